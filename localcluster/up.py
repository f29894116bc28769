"""What `make cluster` puts into its control plane: operators' kinds, nodes with GPUs, the webhook with its chart."""

import json

from localcluster.control_plane import ControlPlane
from localcluster.installation import install_chart, start_webhook, wait_for_webhook
from localcluster.workload_crds import workload_crds

NODES = {
    "gpu-0": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    "gpu-1": {},
}
GPUS_PER_NODE = 8


def fill(cluster: ControlPlane, *, bare: bool) -> None:
    """Make the cluster what the examples need; an error of kubectl, helm or a process goes up."""
    cluster.apply(json.dumps(workload_crds()), "--server-side")
    for name, labels in NODES.items():
        cluster.add_node(name, gpus=GPUS_PER_NODE, labels=labels)
    if not bare:
        after_ready(cluster)


def after_ready(cluster: ControlPlane) -> None:
    """Install the chart for a webhook outside the cluster, run that webhook beside it, wait until it answers."""
    address = install_chart(cluster)
    start_webhook(cluster, address)
    wait_for_webhook(cluster)
