"""Kinds that serve: somebody waits for their answers. Data."""

from collections.abc import Mapping

from webhook.policy import pod_counts as pods
from webhook.policy.kinds.row import Row, Templates, present
from webhook.policy.words import WorkloadType

_TRAINING, SERVING, _BATCH, _INTERACTIVE = WorkloadType
_KSERVE = "https://github.com/kserve/kserve"
_KNATIVE = "https://github.com/knative/serving"
_SELDON = "https://github.com/SeldonIO/seldon-core"
_NIM = "https://github.com/NVIDIA/k8s-nim-operator"
_DYNAMO = "https://github.com/ai-dynamo/dynamo"
_KAITO = "https://github.com/kaito-project/kaito"
_LLMAZ = "https://github.com/InftyAI/llmaz"
_BENTO = "https://github.com/bentoml/yatai-deployment"
_KTHENA = "https://github.com/volcano-sh/kthena"
_AIBRIX = "https://github.com/vllm-project/aibrix"
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


def _inference_service(group: str) -> Row:
    """KServe, and KFServing before it. A predictor over several nodes has its GPUs from its runtime."""
    return Row(
        group,
        "InferenceService",
        "inferenceservices",
        _KSERVE,
        SERVING,
        gpu_fields=("spec.predictor.workerSpec", "spec.predictor.model.runtime"),
        labels=present("serving.kserve.io/inferenceservice"),
        templates=(
            _kserve("predictor"),
            _kserve("transformer"),
            _kserve("explainer"),
            Templates("spec.default.predictor", "", pods.kserve_replicas, "spec", _KSERVE_CONTAINERS),
            Templates("spec.predictor", "workerSpec", pods.kserve_workers, "spec"),
        ),
    )


SERVING_KINDS = (
    _inference_service("serving.kserve.io"),
    _inference_service("serving.kubeflow.org"),
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
    _serves("kaito.sh", "RAGEngine", "ragengines", _KAITO, {}),
    _serves("kaito.sh", "InferenceSet", "inferencesets", _KAITO, {}),
    _serves("kubeai.org", "Model", "models", "https://github.com/substratusai/kubeai", {}),
    _serves("inference.llmaz.io", "Playground", "playgrounds", _LLMAZ, {}),
    _serves("inference.llmaz.io", "Service", "services", _LLMAZ, {}),
    _serves("ome.io", "InferenceService", "inferenceservices", "https://github.com/sgl-project/ome", {}),
    _serves("substratus.ai", "Server", "servers", "https://github.com/substratusai/substratus", {}),
    _serves("serving.yatai.ai", "BentoDeployment", "bentodeployments", _BENTO, {}),
    _serves("workload.serving.volcano.sh", "ModelServing", "modelservings", _KTHENA, {}),
    _serves("workload.serving.volcano.sh", "ModelBooster", "modelboosters", _KTHENA, {}),
    _serves("run.ai", "InferenceWorkload", "inferenceworkloads", "https://run-ai-docs.nvidia.com/", {}),
    _serves(
        "orchestration.aibrix.ai",
        "StormService",
        "stormservices",
        _AIBRIX,
        present("storm-service-name"),
        Templates("spec.template.spec.roles.*", "template", pods.replicas),
    ),
    _serves(
        "orchestration.aibrix.ai",
        "RayClusterFleet",
        "rayclusterfleets",
        _AIBRIX,
        present("orchestration.aibrix.ai/raycluster-fleet-name"),
        Templates("spec.template.spec", "headGroupSpec.template"),
        Templates("spec.template.spec.workerGroupSpecs.*", "template", pods.ray_workers),
    ),
    _serves(
        "kaiwo.silogen.ai",
        "KaiwoService",
        "kaiwoservices",
        "https://github.com/silogen/kaiwo",
        {},
        Templates("spec.deployment.spec", "template", pods.replicas),
    ),
)
