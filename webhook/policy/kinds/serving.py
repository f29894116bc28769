"""Kinds that serve: somebody waits for their answers. Data."""

from collections.abc import Mapping

from webhook.policy import pod_counts as pods
from webhook.policy.facts import WorkloadType
from webhook.policy.kinds.row import Row, Templates, present

_TRAINING, SERVING, _BATCH, _INTERACTIVE = WorkloadType
_KSERVE = "https://github.com/kserve/kserve"
_KNATIVE = "https://github.com/knative/serving"
_SELDON = "https://github.com/SeldonIO/seldon-core"
_NIM = "https://github.com/NVIDIA/k8s-nim-operator"
_DYNAMO = "https://github.com/ai-dynamo/dynamo"
_RAY_LABEL = "ray.io/cluster"

_KSERVE_CONTAINERS = (
    *("model", "sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm"),
    *("paddle", "art"),
)


def _serves(
    group: str, kind: str, plural: str, source: str, labels: Mapping[str, str | None], *templates: Templates
) -> Row:
    return Row(group, kind, plural, source, SERVING, labels=labels, templates=templates)


def _kserve(component: str) -> Templates:
    return Templates(f"spec.{component}", "", pods.kserve_replicas, "spec", _KSERVE_CONTAINERS)


SERVING_KINDS = (
    _serves(
        "serving.kserve.io",
        "InferenceService",
        "inferenceservices",
        _KSERVE,
        present("serving.kserve.io/inferenceservice"),
        _kserve("predictor"),
        _kserve("transformer"),
        _kserve("explainer"),
        Templates("spec.predictor", "workerSpec", pods.kserve_workers, "spec"),
    ),
    _serves(
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
    Row(
        "ray.io",
        "RayService",
        "rayservices",
        "https://github.com/ray-project/kuberay",
        SERVING,
        labels=present(_RAY_LABEL, "ray.io/serve"),
        gang_label=_RAY_LABEL,
        templates=(
            Templates("spec.rayClusterConfig", "headGroupSpec.template"),
            Templates("spec.rayClusterConfig.workerGroupSpecs.*", "template", pods.ray_workers),
        ),
    ),
    _serves(
        "serving.knative.dev",
        "Service",
        "services",
        _KNATIVE,
        present("serving.knative.dev/service"),
        Templates("spec", "template"),
    ),
    _serves("serving.knative.dev", "Configuration", "configurations", _KNATIVE, {}, Templates("spec", "template")),
    _serves("serving.knative.dev", "Revision", "revisions", _KNATIVE, present("serving.knative.dev/revision")),
    _serves(
        "machinelearning.seldon.io",
        "SeldonDeployment",
        "seldondeployments",
        _SELDON,
        present("seldon-deployment-id"),
        Templates("spec.predictors.*.componentSpecs.*", ""),
    ),
    _serves("mlops.seldon.io", "Model", "models", _SELDON, {}),
    _serves("mlops.seldon.io", "Server", "servers", _SELDON, {}),
    _serves(
        "apps.nvidia.com",
        "NIMService",
        "nimservices",
        _NIM,
        {"app.kubernetes.io/managed-by": "k8s-nim-operator"},
        Templates("spec", "resources", pods.replicas, "resources"),
    ),
    _serves("apps.nvidia.com", "NIMPipeline", "nimpipelines", _NIM, {}),
    _serves(
        "nvidia.com",
        "DynamoGraphDeployment",
        "dynamographdeployments",
        _DYNAMO,
        present("nvidia.com/dynamo-component"),
    ),
    _serves("nvidia.com", "DynamoComponentDeployment", "dynamocomponentdeployments", _DYNAMO, {}),
    Row(
        "kaito.sh",
        "Workspace",
        "workspaces",
        "https://github.com/kaito-project/kaito",
        fields=(("tuning", _TRAINING), ("inference", SERVING)),
        labels={"kaito.sh/workspace": None},
    ),
)
