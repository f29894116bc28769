"""Kinds of the operators that serve language models. Data."""

from webhook.policy.workloads import pod_counts as pods
from webhook.policy.workloads.kinds.launchers import RAY_CLUSTER, ray_cluster
from webhook.policy.workloads.kinds.serving import serves
from webhook.policy.workloads.kinds.table import Between, KindRow, Templates, present
from webhook.policy.workloads.pod_counts import groups, groups_if_said
from webhook.policy.workloads.workload_types import WorkloadType

_DYNAMO = "https://github.com/ai-dynamo/dynamo/tree/main/deploy/operator/config/crd/bases"
_KAITO = "https://github.com/kaito-project/kaito/tree/main/config/crd/bases"
_LLMAZ = "https://github.com/InftyAI/llmaz/tree/main/config/crd/bases"
_KTHENA = "https://github.com/volcano-sh/kthena/tree/main/pkg/apis/workload/v1alpha1"
_AIBRIX = "https://github.com/vllm-project/aibrix/tree/main/api/orchestration/v1alpha1"


def _dynamo(kind: str, plural: str) -> KindRow:
    return KindRow(
        "nvidia.com",
        kind,
        plural,
        _DYNAMO,
        WorkloadType.SERVING,
        gpu_fields=tuple(
            f"spec.{part}resources.{asked}.gpu" for part in ("services.*.", "") for asked in ("limits", "requests")
        ),
        labels=present("nvidia.com/dynamo-component"),
        templates=(
            Templates("spec.components.*", "podTemplate", pods.replicas),
            Templates("spec", "podTemplate", pods.replicas),
        ),
    )


def _llmaz(kind: str, plural: str) -> KindRow:
    return serves("inference.llmaz.io", kind, plural, _LLMAZ, present("llmaz.io/model-name"))


def _storm(kind: str, plural: str, *templates: Templates) -> KindRow:
    """A StormService makes RoleSets, and those make pods, or PodSets where a role's pods go in groups."""
    label = present("storm-service-name")
    return serves("orchestration.aibrix.ai", kind, plural, _AIBRIX, label, *templates)


def _ray_fleet(kind: str, plural: str) -> KindRow:
    """A RayClusterFleet makes RayClusterReplicaSets, and those make RayClusters."""
    return serves(
        "orchestration.aibrix.ai",
        kind,
        plural,
        _AIBRIX,
        present("orchestration.aibrix.ai/raycluster-fleet-name"),
        *ray_cluster("spec.template.spec", groups, (Between("spec.template.metadata", RAY_CLUSTER),)),
    )


def _sagemaker(kind: str, plural: str, *templates: Templates) -> KindRow:
    source = "https://github.com/aws/sagemaker-hyperpod-cli"
    return serves("inference.sagemaker.aws.amazon.com", kind, plural, source, {}, *templates)


_ROLE_SET = _storm("RoleSet", "rolesets", Templates("spec.roles.*", "template", pods.role_pods))
_ROLE = (Between("spec.roles.*"),)
"""A role's labels, on what makes its pods."""

LLM_SERVING_KINDS = (
    _dynamo("DynamoGraphDeployment", "dynamographdeployments"),
    _dynamo("DynamoComponentDeployment", "dynamocomponentdeployments"),
    serves("nvidia.com", "DynamoGraphDeploymentRequest", "dynamographdeploymentrequests", _DYNAMO, {}),
    KindRow(
        "kaito.sh",
        "Workspace",
        "workspaces",
        _KAITO,
        fields=(("tuning", WorkloadType.TRAINING), ("inference", WorkloadType.SERVING)),
        labels=present("kaito.sh/workspace"),
    ),
    serves("kaito.sh", "RAGEngine", "ragengines", _KAITO, present("kaito.sh/ragengine")),
    serves("kaito.sh", "InferenceSet", "inferencesets", _KAITO, {}),
    serves(
        "kubeai.org",
        "Model",
        "models",
        "https://github.com/substratusai/kubeai/tree/main/api/k8s/v1",
        {"app.kubernetes.io/managed-by": "kubeai"},
    ),
    _llmaz("Playground", "playgrounds"),
    _llmaz("Service", "services"),
    serves(
        "ome.io",
        "InferenceService",
        "inferenceservices",
        "https://github.com/sgl-project/ome/tree/main/config/crd/full",
        {},
    ),
    serves(
        "workload.serving.volcano.sh",
        "ModelServing",
        "modelservings",
        _KTHENA,
        present("modelserving.volcano.sh/name"),
        Templates("spec.template.roles.*", "entryTemplate", pods.replicas, times=groups),
        Templates("spec.template.roles.*", "workerTemplate", pods.entry_workers, times=groups),
    ),
    serves("workload.serving.volcano.sh", "ModelBooster", "modelboosters", _KTHENA, {}),
    _storm(
        "StormService",
        "stormservices",
        Templates(
            "spec.template.spec.roles.*",
            "template",
            pods.role_pods,
            times=groups_if_said,
            between=(Between("spec.template.metadata", _ROLE_SET),),
        ),
    ),
    _ROLE_SET,
    _storm("PodSet", "podsets", Templates("spec", "template", pods.counted_at("podGroupSize"))),
    _ray_fleet("RayClusterFleet", "rayclusterfleets"),
    _ray_fleet("RayClusterReplicaSet", "rayclusterreplicasets"),
    serves("kaito.sh", "MultiRoleInference", "multiroleinferences", _KAITO, {}),
    KindRow(
        "production-stack.vllm.ai",
        "VLLMRuntime",
        "vllmruntimes",
        "https://github.com/vllm-project/production-stack/tree/main/operator/api/v1alpha1",
        WorkloadType.SERVING,
        gpu_fields=("spec.deploymentConfig.resources.gpu", "spec.resources.gpu"),  # the latter in its first form
    ),
    KindRow(
        "workloads.x-k8s.io",
        "RoleBasedGroup",
        "rolebasedgroups",
        "https://github.com/sgl-project/rbg/tree/main/config/crd/bases",
        usual=WorkloadType.SERVING,
        labels=present("rbg.workloads.x-k8s.io/group-name", "rolebasedgroup.workloads.x-k8s.io/name"),
        templates=(
            Templates("spec.roles.*", "template", pods.replicas, between=_ROLE),
            Templates("spec.roles.*", "standalonePattern.template", pods.replicas, between=_ROLE),
            Templates("spec.roles.*", "leaderWorkerPattern.template", pods.pattern_pods, between=_ROLE),
            Templates("spec.roleTemplates.*", "template"),
            Templates("spec.roles.*", "standalonePattern.templateRef.patch", pods.replicas, between=_ROLE),
            Templates("spec.roles.*", "leaderWorkerPattern.templateRef.patch", pods.pattern_pods, between=_ROLE),
        ),
    ),
    _sagemaker("JumpStartModel", "jumpstartmodels"),
    _sagemaker(
        "InferenceEndpointConfig",
        "inferenceendpointconfigs",
        Templates("spec", "worker", pods.replicas, "container"),
    ),
)
