"""Workloads of the kinds in webhook/policy/workloads/kinds/llm_serving.yaml, and how many GPUs their pods hold."""

from tests.builders import WorkloadBuilder, a_workload
from tests.builders.operators import GPU_POD, a_raycluster, a_stormservice

GPUS: dict[str, tuple[WorkloadBuilder, int]] = {
    "a StormService": (a_stormservice(replicas=2), 4),
    "a StormService in groups of pods": (a_stormservice(replicas=2, podGroupSize=4), 16),
    "a StormService whose role leaves replicas out": (a_stormservice(), 0),
    "a RoleSet": (
        a_workload("orchestration.aibrix.ai/v1alpha1", "RoleSet", roles=[{"replicas": 2, "template": GPU_POD}]),
        2,
    ),
    "a PodSet": (a_workload("orchestration.aibrix.ai/v1alpha1", "PodSet", podGroupSize=4, template=GPU_POD), 4),
    "a RayClusterReplicaSet": (
        a_workload(
            "orchestration.aibrix.ai/v1alpha1",
            "RayClusterReplicaSet",
            replicas=2,
            template={"spec": a_raycluster(replicas=3).json()["spec"]},
        ),
        6,
    ),
    "a ModelServing": (
        a_workload(
            "workload.serving.volcano.sh/v1alpha1",
            "ModelServing",
            replicas=2,
            template={
                "roles": [
                    {
                        "name": "decode",
                        "replicas": 3,
                        "workerReplicas": 1,
                        "entryTemplate": GPU_POD,
                        "workerTemplate": GPU_POD,
                    }
                ]
            },
        ),
        12,
    ),
    "a RayClusterFleet": (
        a_workload(
            "orchestration.aibrix.ai/v1alpha1",
            "RayClusterFleet",
            template={"spec": {"headGroupSpec": {"template": GPU_POD}}},
        ),
        1,
    ),
    "a DynamoGraphDeployment": (
        a_workload(
            "nvidia.com/v1beta1",
            "DynamoGraphDeployment",
            components=[{"name": "Frontend"}, {"name": "decode", "replicas": 2, "podTemplate": GPU_POD}],
        ),
        2,
    ),
    "a DynamoComponentDeployment": (
        a_workload("nvidia.com/v1beta1", "DynamoComponentDeployment", replicas=2, podTemplate=GPU_POD),
        2,
    ),
    "an InferenceEndpointConfig": (
        a_workload(
            "inference.sagemaker.aws.amazon.com/v1alpha1",
            "InferenceEndpointConfig",
            replicas=2,
            worker=GPU_POD["spec"]["containers"][0],
        ),
        2,
    ),
    "a RoleBasedGroup": (
        a_workload(
            "workloads.x-k8s.io/v1alpha2",
            "RoleBasedGroup",
            roles=[
                {"name": "router", "standalonePattern": {"template": GPU_POD}},
                {"name": "decode", "replicas": 2, "leaderWorkerPattern": {"size": 2, "template": GPU_POD}},
            ],
        ),
        5,
    ),
}
