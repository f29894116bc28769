"""What `make cluster` puts into its control plane: what `kubectl apply -f examples/` needs. Runs nothing itself."""

import json
from pathlib import Path

import yaml

from localcluster.control_plane import ControlPlane
from localcluster.installation import install_chart, start_webhook, wait_for_webhook
from localcluster.workload_crds import workload_crds

EXAMPLES = Path(__file__).parents[1] / "examples"
NOT_IN_THE_CHARTS_POLICY = {"apiVersion", "kind", "preset", "mode"}  # written by the chart, or values of their own
TENANTS_SECONDS = 30

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
    """Install the chart, run the webhook beside the cluster, and add the examples' tenants once it answers."""
    address = install_chart(cluster, preset="four-tier", policy=example_policy())
    start_webhook(cluster, address)
    wait_for_webhook(cluster)
    cluster.kubectl("apply", "-f", str(EXAMPLES / "tenants"))
    cluster.kubectl("wait", "--for=condition=Ready", "tenantquota", "--all", f"--timeout={TENANTS_SECONDS}s")


def example_policy() -> dict[str, object]:
    """Return the examples' policy file as the chart's value `policy`."""
    file = yaml.safe_load((EXAMPLES / "policies" / "four-tier.yaml").read_text())
    return {field: value for field, value in file.items() if field not in NOT_IN_THE_CHARTS_POLICY}
