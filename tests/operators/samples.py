"""Workloads in the shapes of their projects' own samples, with GPUs, as a team would write them."""

from typing import Any

Tree = dict[str, Any]

TORCH = "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"
SURVIVES_PREEMPTION = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}


def a_container(name: str, gpus: int, *command: str, image: str = TORCH) -> Tree:
    """A container that asks for GPUs, or for none."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}
    return {"name": name, "image": image, "command": list(command), **limits}


def a_template(container: Tree, **spec: object) -> Tree:
    """A pod template of one container."""
    return {"spec": {"containers": [container], **spec}}


def a_workload(version: str, kind: str, name: str, spec: Tree) -> Tree:
    """An object as a person applies it."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def a_jobset(name: str, nodes: int = 4, gpus: int = 1, **spec: object) -> Tree:
    """One Job of as many nodes, and a store for their rendezvous without a GPU."""
    train = a_container("pytorch", gpus, "torchrun", f"--nnodes={nodes}", "train.py")
    store = a_container("store", 0, "python", "-m", "rendezvous", image="python:3.13")
    jobs = [a_replicated_job("workers", nodes, train), a_replicated_job("store", 1, store)]
    said = {"failurePolicy": {"maxRestarts": 3}, "replicatedJobs": jobs, **spec}
    return a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", name, said)


def a_replicated_job(name: str, pods: int, container: Tree) -> Tree:
    """A replicated Job of one replica."""
    job = {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": SURVIVES_PREEMPTION,
        "template": a_template(container, restartPolicy="Never"),
    }
    return {"name": name, "replicas": 1, "template": {"spec": job}}


def an_lws(name: str, replicas: int = 2, size: int = 2, gpus: int = 2) -> Tree:
    """vLLM across nodes: groups of a leader that serves and its workers."""
    vllm = "vllm/vllm-openai:v0.8.5"
    leader = a_container("vllm-leader", gpus, "sh", "-c", "vllm serve meta-llama/Llama-3.1-405B-Instruct", image=vllm)
    worker = a_container("vllm-worker", gpus, "sh", "-c", "ray start --address=$(LWS_LEADER_ADDRESS)", image=vllm)
    group = {
        "size": size,
        "restartPolicy": "RecreateGroupOnPodRestart",
        "leaderTemplate": a_template(leader),
        "workerTemplate": a_template(worker),
    }
    said = {"replicas": replicas, "leaderWorkerTemplate": group}
    return a_workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, said)


def a_disaggregated_set(name: str, **roles: int) -> Tree:
    """Prefill and decode, each so many groups."""
    each = [{"name": role, "spec": an_lws(role, replicas=groups)["spec"]} for role, groups in roles.items()]
    return a_workload("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet", name, {"roles": each})


def a_ray(workers: int, gpus: int, **group: object) -> Tree:
    """The spec of a RayCluster: a head without a GPU, and one group of workers."""
    ray = "rayproject/ray-ml:2.46.0-gpu"
    worker = a_container("ray-worker", gpus, image=ray)
    head = a_container("ray-head", 0, image=ray)
    del worker["command"], head["command"]
    workers_of = {
        "groupName": "gpu",
        "replicas": workers,
        "minReplicas": 1,
        "maxReplicas": 10,
        "rayStartParams": {},
        "template": a_template(worker),
    }
    return {
        "rayVersion": "2.46.0",
        "headGroupSpec": {"rayStartParams": {}, "template": a_template(head)},
        "workerGroupSpecs": [workers_of | group],
    }


def a_raycluster(name: str, workers: int = 2, gpus: int = 1, **spec: object) -> Tree:
    """A cluster to work on by hand."""
    return a_workload("ray.io/v1", "RayCluster", name, a_ray(workers, gpus) | spec)


def a_rayjob(name: str, workers: int = 2, gpus: int = 1, **spec: object) -> Tree:
    """A cluster for one program."""
    said = {"entrypoint": "python embed.py", "rayClusterSpec": a_ray(workers, gpus), **spec}
    return a_workload("ray.io/v1", "RayJob", name, said)


def a_pytorchjob(name: str, workers: int = 3, gpus: int = 1, **policy: object) -> Tree:
    """A master and its workers."""
    train = a_template(a_container("pytorch", gpus, "python", "train.py", "--backend=nccl"))
    replicas = {
        "Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": train},
        "Worker": {"replicas": workers, "restartPolicy": "OnFailure", "template": train},
    }
    said = {"runPolicy": {"cleanPodPolicy": "None", **policy}, "pytorchReplicaSpecs": replicas}
    return a_workload("kubeflow.org/v1", "PyTorchJob", name, said)


def a_jaxjob(name: str, workers: int = 4, gpus: int = 1) -> Tree:
    """Workers alone: the first of them leads."""
    train = a_template(a_container("jax", gpus, "python", "train.py", image="kubeflow/jaxjob-simple:latest"))
    worker = {"replicas": workers, "restartPolicy": "OnFailure", "template": train}
    return a_workload("kubeflow.org/v1", "JAXJob", name, {"jaxReplicaSpecs": {"Worker": worker}})


def a_trainjob(name: str, nodes: int = 4, gpus: int = 1, **spec: object) -> Tree:
    """Return a TrainJob as a data scientist writes it: a runtime of the platform, nodes, and GPUs on each."""
    trainer = {
        "image": TORCH,
        "command": ["torchrun", "train.py"],
        "numNodes": nodes,
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": gpus}, "requests": {"nvidia.com/gpu": gpus}},
    }
    said = {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer, **spec}
    return a_workload("trainer.kubeflow.org/v1alpha1", "TrainJob", name, said)


def a_volcano_job(name: str, workers: int = 3, gpus: int = 1, **spec: object) -> Tree:
    """A master and its workers, which start together."""
    train = a_container("pytorch", gpus, "torchrun", "train.py")
    said = {
        "schedulerName": "default-scheduler",
        "minAvailable": workers + 1,
        "queue": "default",
        "tasks": [
            {"name": "master", "replicas": 1, "template": a_template(train, restartPolicy="OnFailure")},
            {"name": "worker", "replicas": workers, "template": a_template(train, restartPolicy="OnFailure")},
        ],
        **spec,
    }
    return a_workload("batch.volcano.sh/v1alpha1", "Job", name, said)


def a_volcano_cron_job(name: str, **spec: object) -> Tree:
    """A Job of Volcano's each minute, unless the last one is still there."""
    template = {"spec": a_volcano_job(name, **spec)["spec"]}
    said = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": template}
    return a_workload("batch.volcano.sh/v1alpha1", "CronJob", name, said)


def a_knative_service(name: str, gpus: int = 4, **annotations: str) -> Tree:
    """vLLM as one revision. By its digest, for no registry is asked then; `annotations` of the template."""
    image = "vllm/vllm-openai@sha256:014a95f21c9edf6abe0aea6b07353f96baa4ec291c427bb1176dc7c93a85845c"
    server = {"image": image, "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [server]}}
    return a_workload("serving.knative.dev/v1", "Service", name, {"template": template})
