"""NVIDIA's KAI scheduler: three processes that place pods, with CRDs, rights and classes of its chart.

An operator of its own makes their Deployments, accounts and settings; it doesn't run here. Nor do its controllers,
which write numbers into statuses, and its webhook, which serves parts of GPUs.
"""

from localcluster.operators import binaries
from localcluster.operators.operator import Operator

MODULE = "github.com/NVIDIA/KAI-scheduler"
NAMESPACE = "kai-scheduler"
CHART = "deployments/kai-scheduler"

FILES = (
    "crds/kai.scheduler_topologies",
    "crds/scheduling.run.ai_bindrequests",
    "crds/scheduling.run.ai_podgroups",
    "crds/scheduling.run.ai_queues",
    "templates/priorityclasses/build",
    "templates/priorityclasses/build-preemptible",
    "templates/priorityclasses/inference",
    "templates/priorityclasses/train",
    "templates/rbac/binder",
    "templates/rbac/podgrouper",
    "templates/rbac/scheduler",
)
"""The files of the chart that are plain YAML."""


def account(name: str, role: str) -> str:
    """Return a ServiceAccount with a role of the chart."""
    return f"""
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {name}, namespace: {NAMESPACE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {role}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}
subjects: [{{kind: ServiceAccount, name: {name}, namespace: {NAMESPACE}}}]
"""


SCHEDULER = Operator(
    binary=binaries.KAI_SCHEDULER,
    module=MODULE,
    manifests=tuple(f"{CHART}/{each}.yaml" for each in FILES),
    installed=f"""
apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}}}
{account("scheduler", "kai-scheduler")}
{account("pod-grouper", "kai-podgrouper")}
{account("binder", "kai-binder")}
""",
    namespace=NAMESPACE,
    account="scheduler",
    arguments=("--listen-address=127.0.0.1:$webhook", "--plugin-server-port=$probe"),
    kubeconfig="",
    ready="",
)
"""The scheduler. It installs what the other two need, so it starts first. Without a settings file it uses defaults."""

POD_GROUPER = Operator(
    binary=binaries.KAI_POD_GROUPER,
    module=MODULE,
    manifests=(),
    namespace=NAMESPACE,
    account="pod-grouper",
    arguments=("--health-probe-bind-address=127.0.0.1:$probe", "--metrics-bind-address=0"),
)

BINDER = Operator(
    binary=binaries.KAI_BINDER,
    module=MODULE,
    manifests=(),
    namespace=NAMESPACE,
    account="binder",
    arguments=("--health-probe-bind-address=0", "--metrics-bind-address=127.0.0.1:$webhook"),
    ready="",
)
