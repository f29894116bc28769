"""Workloads and groups of pods, as a person applies them."""

from tests.builders.built import Built
from tests.builders.pods import PodBuilder, a_pod
from webhook.objects.group_kind import GroupKind
from webhook.policy.workloads.kind_table import BUILT_IN
from webhook.policy.workloads.templates import workload
from webhook.policy.workloads.workload import Workload


class WorkloadBuilder(Built):
    """A workload of any kind."""

    def view(self) -> Workload:
        group = str(self.tree["apiVersion"]).rpartition("/")[0]
        return workload(self.json(), BUILT_IN.by_kind[GroupKind(group, self.tree["kind"])])


def a_workload(api_version: str, kind: str, name: str = "work", **spec: object) -> WorkloadBuilder:
    """A workload with a spec."""
    metadata = {"name": name, "namespace": "team-alpha", "uid": f"uid-of-{name}"}
    return WorkloadBuilder({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})


def a_job(pod: PodBuilder | None = None, name: str = "work", **spec: object) -> WorkloadBuilder:
    """A Job of one template."""
    return a_workload("batch/v1", "Job", name, template=(pod or a_pod().asking()).template(), **spec)


def a_deployment(pod: PodBuilder | None = None, name: str = "work", replicas: int = 1) -> WorkloadBuilder:
    """A Deployment."""
    return a_workload("apps/v1", "Deployment", name, replicas=replicas, template=(pod or a_pod().asking()).template())


def a_replicaset(pod: PodBuilder | None = None, name: str = "work-5d9", replicas: int = 1) -> WorkloadBuilder:
    """A ReplicaSet, which a Deployment mostly owns."""
    return a_workload("apps/v1", "ReplicaSet", name, replicas=replicas, template=(pod or a_pod().asking()).template())


def a_pytorchjob(pod: PodBuilder | None = None, name: str = "work", workers: int = 1) -> WorkloadBuilder:
    """A PyTorchJob of workers alone."""
    worker = {"replicas": workers, "template": (pod or a_pod().asking()).template()}
    return a_workload("kubeflow.org/v1", "PyTorchJob", name, pytorchReplicaSpecs={"Worker": worker})


def a_notebook(pod: PodBuilder | None = None, name: str = "workbench") -> WorkloadBuilder:
    """A Notebook; one without a pod leaves its template out."""
    return a_workload("kubeflow.org/v1", "Notebook", name, **({"template": pod.template()} if pod else {}))


def a_podgroup(name: str = "gang", api_version: str = "scheduling.k8s.io/v1beta1") -> Built:
    """A PodGroup of Kubernetes 1.37, or of another version."""
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    metadata = {"name": name, "namespace": "team-alpha", "creationTimestamp": None}
    return Built({"apiVersion": api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec})


def a_composite_podgroup(name: str = "tree") -> Built:
    """A CompositePodGroup of Kubernetes 1.38, which needs two groups below it."""
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    metadata = {"name": name, "namespace": "team-alpha", "creationTimestamp": None}
    return Built(
        {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "CompositePodGroup", "metadata": metadata, "spec": spec}
    )


def a_scheduling_workload(name: str = "llm", **templates: str) -> Built:
    """Kubernetes' own Workload, with templates by name, each with its class."""
    written = [
        {"name": each, "schedulingPolicy": {"gang": {"minCount": 2}}} | ({"priorityClassName": name} if name else {})
        for each, name in templates.items()
    ]
    metadata = {"name": name, "namespace": "team-alpha"}
    version, spec = "scheduling.k8s.io/v1beta1", {"podGroupTemplates": written}
    return Built({"apiVersion": version, "kind": "Workload", "metadata": metadata, "spec": spec})
