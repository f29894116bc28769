"""Objects in the full shape in which an API server sends them: defaults filled in, no managedFields."""

import copy
from typing import Any

Tree = dict[str, Any]

TOKEN = "kube-api-access-8xk2v"  # noqa: S105 - a volume's name
_TOKEN_VOLUME = {
    "name": TOKEN,
    "projected": {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ],
        "defaultMode": 420,
    },
}
_TOKEN_MOUNT = {"name": TOKEN, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}


def a_container(name: str = "main", *, gpus: object = None, **more: object) -> Tree:
    """A container; `gpus` as limits, and as the requests that the API server defaults from them."""
    resources = {} if gpus is None else {"limits": {"nvidia.com/gpu": gpus}, "requests": {"nvidia.com/gpu": gpus}}
    return {
        "name": name,
        "image": "registry.example.com/team/app:1.4",
        "resources": resources,
        "volumeMounts": [copy.deepcopy(_TOKEN_MOUNT)],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        **more,
    }


def a_pod(*containers: Tree, owner: Tree | None = None, metadata: Tree | None = None, **spec: object) -> Tree:
    """A pod as admission sees it at CREATE: ServiceAccount and Priority have run, the uid comes later."""
    meta: Tree = {"namespace": "team-alpha", "creationTimestamp": None, **(metadata or {})}
    meta.setdefault("name" if owner is None else "generateName", "pod-1" if owner is None else f"{owner_name(owner)}-")
    if owner is not None:
        meta["ownerReferences"] = [controlled_by(owner)]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": meta,
        "spec": {
            "volumes": [copy.deepcopy(_TOKEN_VOLUME)],
            "containers": list(containers),
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            **spec,
        },
        "status": {},
    }


def a_gpu_pod(gpus: object = "2", *, tier: str | None = None, owner: Tree | None = None, **spec: object) -> Tree:
    """A pod of one container with GPUs, and a tier label where a person wrote one."""
    labels = {"app": "x"} | ({"gpu-tiers.dev/tier": tier} if tier is not None else {})
    return a_pod(a_container(gpus=gpus), owner=owner, metadata={"labels": labels}, **spec)


def of_class(name: str, value: int, policy: str = "PreemptLowerPriority") -> Tree:
    """The three fields as Priority fills them in for a class that a person wrote."""
    return {"priorityClassName": name, "priority": value, "preemptionPolicy": policy}


def a_pytorchjob(gpus: int = 2, *, workers: int = 1, name: str = "llm-finetune", **metadata: object) -> Tree:
    """A PyTorchJob as a person applies it: limits alone, no defaults in its templates."""
    container = {
        "name": "pytorch",
        "image": "pytorch/pytorch:2.13.0",
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    replica = {"replicas": workers, "restartPolicy": "OnFailure", "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": "team-alpha", "uid": f"uid-of-{name}", **metadata},
        "spec": {"pytorchReplicaSpecs": {"Worker": replica}},
    }


def a_deployment(gpus: object = 1, *, replicas: int = 1, name: str = "app", **metadata: object) -> Tree:
    """A Deployment with GPUs."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "team-alpha", "uid": f"uid-of-{name}", **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}]},
            },
        },
    }


def a_podgroup(name: str = "gang", *, owner: Tree | None = None, tier: str | None = None, **spec: object) -> Tree:
    """A PodGroup of 1.37 as admission sees it."""
    metadata: Tree = {"name": name, "namespace": "team-alpha", "creationTimestamp": None}
    if owner is not None:
        metadata["ownerReferences"] = [controlled_by(owner)]
    if tier is not None:
        metadata["labels"] = {"gpu-tiers.dev/tier": tier}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}, **spec},
    }


def controlled_by(owner: Tree) -> Tree:
    """A controllerRef to an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner_name(owner),
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owner_name(owner: Tree) -> str:
    return str(owner["metadata"]["name"])
