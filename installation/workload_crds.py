"""The kinds of the workload operators as empty CRDs, so that their objects can be applied. No operator runs.

Groups, versions and plurals are those of the projects' own CRDs; the schemas are left out, any field is kept.
"""

from dataclasses import dataclass
from typing import Any

from localcluster import Cluster
from localcluster.crds import add_crds


@dataclass(frozen=True)
class WorkloadKind:
    """One kind: group, kind, plural, its versions, the stored one first, and the scope of its objects.

    `scale` is the field that its scale subresource writes.
    """

    group: str
    kind: str
    plural: str
    versions: tuple[str, ...]
    scope: str = "Namespaced"
    scale: str = ""


WORKLOAD_KINDS = (
    WorkloadKind(
        "kubeflow.org", "PyTorchJob", "pytorchjobs", ("v1",), scale=".spec.pytorchReplicaSpecs.Worker.replicas"
    ),
    WorkloadKind("kubeflow.org", "TFJob", "tfjobs", ("v1",)),
    WorkloadKind("kubeflow.org", "MPIJob", "mpijobs", ("v1", "v2beta1")),
    WorkloadKind("kubeflow.org", "XGBoostJob", "xgboostjobs", ("v1",)),
    WorkloadKind("kubeflow.org", "JAXJob", "jaxjobs", ("v1",), scale=".spec.jaxReplicaSpecs.Worker.replicas"),
    WorkloadKind("kubeflow.org", "PaddleJob", "paddlejobs", ("v1",), scale=".spec.paddleReplicaSpecs.Worker.replicas"),
    WorkloadKind("kubeflow.org", "Notebook", "notebooks", ("v1",)),
    WorkloadKind("trainer.kubeflow.org", "TrainJob", "trainjobs", ("v1alpha1",)),
    WorkloadKind("trainer.kubeflow.org", "TrainingRuntime", "trainingruntimes", ("v1alpha1",)),
    WorkloadKind("trainer.kubeflow.org", "ClusterTrainingRuntime", "clustertrainingruntimes", ("v1alpha1",), "Cluster"),
    WorkloadKind("jobset.x-k8s.io", "JobSet", "jobsets", ("v1alpha2",)),
    WorkloadKind("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "leaderworkersets", ("v1",), scale=".spec.replicas"),
    WorkloadKind("ray.io", "RayCluster", "rayclusters", ("v1",)),
    WorkloadKind("ray.io", "RayJob", "rayjobs", ("v1",)),
    WorkloadKind("ray.io", "RayService", "rayservices", ("v1",)),
    WorkloadKind("workload.codeflare.dev", "AppWrapper", "appwrappers", ("v1beta2",)),
    WorkloadKind("serving.kserve.io", "InferenceService", "inferenceservices", ("v1beta1",)),
    WorkloadKind("serving.kserve.io", "LLMInferenceService", "llminferenceservices", ("v1alpha1",)),
)


def add_kinds(cluster: Cluster) -> None:
    """Make a cluster serve all of WORKLOAD_KINDS."""
    add_crds(cluster, *map(crd, WORKLOAD_KINDS))


def crd(row: WorkloadKind) -> dict[str, Any]:
    """Return one CustomResourceDefinition that keeps all fields of an object.

    The API server protects the groups below *.k8s.io: their CRDs must name an approval, or say that there is none.
    """
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{row.plural}.{row.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in for the operator's own CRD"},
        },
        "spec": {
            "group": row.group,
            "scope": row.scope,
            "names": {"kind": row.kind, "plural": row.plural, "singular": row.kind.lower()},
            "versions": [version(row, name) for name in row.versions],
        },
    }


def version(row: WorkloadKind, name: str) -> dict[str, object]:
    """Return one version of a CRD: its objects are kept as they are."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": row.scale, "statusReplicasPath": ".status.replicas"}
    return {
        "name": name,
        "served": True,
        "storage": name == row.versions[0],
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}} | ({"scale": scale} if row.scale else {}),
    }
