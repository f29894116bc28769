"""What `make cluster NODE=real` puts into its cluster: the chart as a user installs it. Runs nothing itself."""

import json

from localcluster.binaries import find, node_binaries
from localcluster.credentials import NODE
from localcluster.installation import RELEASE, ROOT, helm, wait_for_webhook
from localcluster.node.cluster import NodeCluster
from localcluster.node.images import project_image, python_image
from localcluster.node.packages import have_packages
from localcluster.up import EXAMPLES, NODES, TENANTS_SECONDS, example_policy
from localcluster.workload_crds import workload_crds


def prepare(minor: str) -> None:
    """Have all that takes minutes the first time; NodeError or BinaryError where it can't be had."""
    have_packages()
    for binary in node_binaries(minor).values():
        find(binary)
    project_image()


def fill(cluster: NodeCluster, *, bare: bool) -> None:
    """Make the cluster what the examples need; an error of kubectl, helm or containerd goes up."""
    cluster.apply(json.dumps(workload_crds()), "--server-side")
    cluster.kubectl("label", "node", NODE, *(f"{key}={value}" for key, value in NODES["gpu-0"].items()))
    for image in (python_image(), project_image()):
        cluster.import_image(image)
    if not bare:
        install(cluster)


def install(cluster: NodeCluster) -> None:
    """Install the chart in Enforce, wait for its pod, and add the examples' tenants."""
    values = json.dumps({"mode": "Enforce", "policy": example_policy()})
    release = ["install", RELEASE, str(ROOT / "charts" / "gpu-tiers"), f"--namespace={RELEASE}", "--create-namespace"]
    helm(cluster, *release, "--values=-", "--wait", "--timeout=120s", input=values)
    wait_for_webhook(cluster)
    cluster.kubectl("apply", "-f", str(EXAMPLES / "tenants"))
    cluster.kubectl("wait", "--for=condition=Ready", "tenantquota", "--all", f"--timeout={TENANTS_SECONDS}s")
