"""Kinds that serve: somebody waits for their answers. Data."""

from collections.abc import Mapping

from webhook.policy.workloads import pod_counts as pods
from webhook.policy.workloads.kinds.core import DEPLOYMENT
from webhook.policy.workloads.kinds.launchers import ray_cluster
from webhook.policy.workloads.kinds.table import Between, KindRow, Templates, present
from webhook.policy.workloads.pod_counts import predictor_replicas
from webhook.policy.workloads.workload_types import WorkloadType

_KSERVE = "https://github.com/kserve/kserve/tree/master/pkg/apis/serving"
_KNATIVE = "https://github.com/knative/serving/tree/main/pkg/apis/serving"
_SELDON = "https://github.com/SeldonIO/seldon-core/tree"
_NIM = "https://github.com/NVIDIA/k8s-nim-operator/tree/main/api/apps/v1alpha1"
_RAY_LABEL = "ray.io/cluster"

_KSERVE_CONTAINERS = (
    *("model", "sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm"),
    *("paddle", "art"),
)


def serves(
    group: str, kind: str, plural: str, source: str, labels: Mapping[str, str | None], *templates: Templates
) -> KindRow:
    """A kind that proves serving. Without templates its GPUs come from a runtime, a profile or a field of its own."""
    return KindRow(group, kind, plural, source, WorkloadType.SERVING, labels=labels, templates=templates)


def _kserve(component: str) -> Templates:
    return Templates(f"spec.{component}", "", pods.kserve_replicas, "spec", _KSERVE_CONTAINERS)


_NIM_SERVICE = serves(
    "apps.nvidia.com",
    "NIMService",
    "nimservices",
    _NIM,
    {"app.kubernetes.io/part-of": "nim-service"},
    Templates("", "spec.resources", pods.nim_pods, "resources", between=(Between("spec"),)),
)
_RAY_SERVICE = KindRow(
    "ray.io",
    "RayService",
    "rayservices",
    "https://github.com/ray-project/kuberay/tree/master/ray-operator/config/crd/bases",
    WorkloadType.SERVING,
    labels=present(_RAY_LABEL, "ray.io/originated-from-cr-name", "ray.io/serve"),
    gang_label=_RAY_LABEL,
    templates=ray_cluster("spec.rayClusterConfig"),
)

SERVING_KINDS = (
    KindRow(
        "serving.kserve.io",
        "InferenceService",
        "inferenceservices",
        _KSERVE,
        WorkloadType.SERVING,
        gpu_fields=("spec.predictor.workerSpec",),  # over several nodes its GPUs come from its runtime
        labels=present("serving.kserve.io/inferenceservice"),
        templates=(
            _kserve("predictor"),
            _kserve("transformer"),
            _kserve("explainer"),
            Templates("spec.predictor", "workerSpec", pods.kserve_workers, "spec"),
        ),
    ),
    serves(
        "serving.kserve.io",
        "LLMInferenceService",
        "llminferenceservices",
        _KSERVE,
        {"app.kubernetes.io/part-of": "llminferenceservice"},
        Templates("spec", "template", pods.replicas, "spec"),
        Templates("spec", "worker", pods.llm_workers, "spec"),
        Templates("spec.prefill", "template", pods.replicas, "spec"),
        Templates("spec.prefill", "worker", pods.llm_workers, "spec"),
    ),
    _RAY_SERVICE,
    serves(
        "serving.knative.dev",
        "Service",
        "services",
        _KNATIVE,
        present("serving.knative.dev/service"),
        Templates("spec", "template"),
    ),
    serves("serving.knative.dev", "Configuration", "configurations", _KNATIVE, {}, Templates("spec", "template")),
    serves("serving.knative.dev", "Revision", "revisions", _KNATIVE, present("serving.knative.dev/revision")),
    serves(
        "machinelearning.seldon.io",
        "SeldonDeployment",
        "seldondeployments",
        f"{_SELDON}/master/operator/apis/machinelearning.seldon.io/v1",
        present("seldon-deployment-id"),
        Templates(
            "spec.predictors.*.componentSpecs.*",
            "",
            pods.replicas,
            times=predictor_replicas,
            between=(Between("spec.predictors.*"),),
        ),
    ),
    serves(
        "mlops.seldon.io",
        "Server",
        "servers",
        f"{_SELDON}/v2/operator/config/crd/bases",
        {"app.kubernetes.io/name": "seldon-server"},
        Templates("spec", "podSpec", pods.replicas, "spec"),
    ),
    _NIM_SERVICE,
    serves(
        "apps.nvidia.com",
        "NIMPipeline",
        "nimpipelines",
        _NIM,
        {},
        Templates(
            "spec.services.*",
            "spec.resources",
            pods.nim_stage_pods,
            "resources",
            between=(Between("spec.services.*.spec", _NIM_SERVICE),),
        ),
    ),
    serves("run.ai", "InferenceWorkload", "inferenceworkloads", "https://github.com/run-ai/docs", {}),
    KindRow(
        "kaiwo.silogen.ai",
        "KaiwoService",
        "kaiwoservices",
        "https://github.com/silogen/kaiwo/tree/main/apis/kaiwo/v1alpha1",
        WorkloadType.SERVING,
        gpu_fields=("spec.gpus", "spec.gpusPerReplica"),
        labels={"kaiwo.silogen.ai/type": "service"},
        templates=(
            Templates(
                "spec.deployment.spec",
                "template",
                pods.replicas,
                between=(Between("spec.deployment.metadata", DEPLOYMENT),),
            ),
            *ray_cluster(
                "spec.rayService.spec.rayClusterConfig", between=(Between("spec.rayService.metadata", _RAY_SERVICE),)
            ),
        ),
    ),
)
