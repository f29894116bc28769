"""The AdmissionReviews that the benchmarks send: a pod as an API server sends it, some 9.5 KB."""

import json
from typing import Any

ENVIRONMENT = [{"name": f"NCCL_SETTING_{number}", "value": "some-value-" * 6} for number in range(60)]


def pod(gpus: int) -> dict[str, Any]:
    """A training pod after the API server's defaulting."""
    limits = {"cpu": "8", "memory": "64Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    container = {
        "name": "train",
        "image": "registry.example/train@sha256:" + "0" * 64,
        "command": ["python", "-m", "train", "--config=/etc/train/config.yaml"],
        "env": ENVIRONMENT,
        "resources": {"limits": limits, "requests": limits},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "generateName": "train-",
            "namespace": "team-alpha",
            "labels": {"app": "train", "team": "alpha"},
            "annotations": {"example.com/commit": "f00" * 13},
        },
        "spec": {
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {},
    }


def review(gpus: int = 8) -> bytes:
    """The whole review."""
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": "team-alpha",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:job-controller", "groups": ["system:masters"]},
        "object": pod(gpus),
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode()
