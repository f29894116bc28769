"""Workloads of the kinds in webhook/policy/workloads/kinds/serving.yaml, and how many GPUs their pods hold."""

from tests.builders import WorkloadBuilder, a_workload
from tests.builders.operators import (
    GPU_POD,
    HEAD,
    LIMITS,
    MODEL,
    a_nimservice,
    a_raycluster,
    a_seldondeployment,
    an_inferenceservice,
    an_llminferenceservice,
)

GPUS: dict[str, tuple[WorkloadBuilder, int]] = {
    "a RayService": (
        a_workload("ray.io/v1", "RayService", rayClusterConfig=a_raycluster(replicas=1).json()["spec"]),
        1,
    ),
    "an InferenceService": (an_inferenceservice(predictor={"minReplicas": 2, "model": MODEL}), 2),
    "one that scales to zero": (an_inferenceservice(predictor={"minReplicas": 0, "model": MODEL}), 0),
    "one of an old framework's field": (an_inferenceservice(predictor={"triton": MODEL}), 1),
    "one with containers of its own": (an_inferenceservice(predictor=HEAD), 1),
    "one with a transformer": (
        an_inferenceservice(predictor={"model": MODEL}, transformer={"minReplicas": 2, **HEAD}),
        3,
    ),
    "one with an explainer": (an_inferenceservice(predictor={"model": MODEL}, explainer={"art": MODEL}), 2),
    "one that spans nodes": (
        an_inferenceservice(predictor={"model": MODEL, "workerSpec": {"pipelineParallelSize": 3, **HEAD}}),
        3,
    ),
    "an LLMInferenceService": (an_llminferenceservice(replicas=2, template=HEAD), 2),
    "one in groups by pipeline": (
        an_llminferenceservice(replicas=2, parallelism={"pipeline": 3}, template=HEAD, worker=HEAD),
        6,
    ),
    "one in groups by data": (
        an_llminferenceservice(parallelism={"data": 16, "dataLocal": 8}, template=HEAD, worker=HEAD),
        2,
    ),
    "one with prefill": (
        an_llminferenceservice(template=HEAD, prefill={"replicas": 2, "template": HEAD, "worker": HEAD}),
        3,
    ),
    "a Knative Service": (a_workload("serving.knative.dev/v1", "Service", template=GPU_POD), 1),
    "a Knative Configuration": (a_workload("serving.knative.dev/v1", "Configuration", template=GPU_POD), 1),
    "a SeldonDeployment": (
        a_workload(
            "machinelearning.seldon.io/v1", "SeldonDeployment", predictors=[{"componentSpecs": [{"spec": HEAD}]}]
        ),
        1,
    ),
    "a SeldonDeployment of replicas": (a_seldondeployment({"replicas": 3}), 3),
    "one whose predictor says how many": (a_seldondeployment({}, replicas=2), 2),
    "a Seldon Server": (a_workload("mlops.seldon.io/v1alpha1", "Server", replicas=2, podSpec=HEAD), 2),
    "a NIMService": (a_nimservice(replicas=2), 16),
    "one over two nodes": (a_nimservice(replicas=2, multiNode={"parallelism": {"pipeline": 2, "tensor": 8}}), 32),
    "one that scales": (a_nimservice(scale={"enabled": True, "hpa": {"minReplicas": 3, "maxReplicas": 9}}), 24),
    "a NIMPipeline": (
        a_workload(
            "apps.nvidia.com/v1alpha1",
            "NIMPipeline",
            services=[
                {"name": "guard", "enabled": True, "spec": {"replicas": 2, "resources": LIMITS}},
                {"name": "chat", "enabled": False, "spec": {"replicas": 2, "resources": LIMITS}},
            ],
        ),
        16,
    ),
    "a KaiwoService on Ray": (
        a_workload(
            "kaiwo.silogen.ai/v1alpha1",
            "KaiwoService",
            ray=True,
            rayService={"spec": {"rayClusterConfig": a_raycluster(replicas=2).json()["spec"]}},
        ),
        2,
    ),
    "a KaiwoService": (
        a_workload(
            "kaiwo.silogen.ai/v1alpha1", "KaiwoService", deployment={"spec": {"replicas": 2, "template": GPU_POD}}
        ),
        2,
    ),
}
