"""Pods, as a person writes them and as the API server sends them."""

from collections.abc import Callable, Mapping
from typing import Self

from tests.builders.built import Built, Tree, copied
from webhook.objects.pods import Pod
from webhook.objects.view import view

GPU = "nvidia.com/gpu"
IMAGE = "pytorch/pytorch:2.13.0"

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
_NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "tolerations": [_NOT_READY],
    "priority": 0,
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}
_CONTAINER = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}


class PodBuilder(Built):
    """A pod, or with `.template()` a workload's pod template."""

    def asking(self, gpus: object = 1, *, resource: str = GPU, name: str = "main", **more: object) -> Self:
        """Return a pod with one more app container that asks for `gpus` of a resource."""
        return self.having("spec.containers", [_container(name, resource, gpus, more)])

    def with_init(self, gpus: object = 1, *, resource: str = GPU, name: str = "init", **more: object) -> Self:
        """Return a pod with one more init container."""
        return self.having("spec.initContainers", [_container(name, resource, gpus, more)])

    def with_sidecar(self, gpus: object = 1, *, name: str = "sidecar") -> Self:
        """Return a pod with one more init container that keeps running (KEP-753)."""
        return self.with_init(gpus, name=name, restartPolicy="Always")

    def running(self, *command: str, image: str = IMAGE, name: str = "main", **more: object) -> Self:
        """Return a pod with one more app container that asks for nothing."""
        return self.having("spec.containers", [{"name": name, "image": image, "command": list(command), **more}])

    def in_group(self, name: str) -> Self:
        return self.having("spec.schedulingGroup", {"podGroupName": name})

    def template(self) -> Tree:
        """Return the template that a workload carries for this pod."""
        metadata = {key: value for key, value in self.json()["metadata"].items() if key in ("labels", "annotations")}
        return {"metadata": metadata, "spec": self.json()["spec"]}

    def view(self) -> Pod:
        """Return the pod as the policy reads it, with requests that the API server takes from the limits."""
        tree = self.json()
        return view({**tree, "spec": _in_containers(tree["spec"], _requesting)}, Pod)

    def sent(self) -> Tree:
        """Return the pod as webhooks see it at CREATE: with the API server's defaults, a ServiceAccount and a priority.

        What is written stays. The uid comes later, and so does the name of a pod that a controller makes.
        """
        written = self.json()
        spec, metadata = {**copied(_SPEC), **written["spec"]}, {"creationTimestamp": None, **written["metadata"]}
        spec["volumes"] = [copied(_TOKEN_VOLUME), *written["spec"].get("volumes", [])]
        if owners := metadata.get("ownerReferences"):
            metadata.setdefault("generateName", f"{owners[0]['name']}-")
            del metadata["name"]
        return {**written, "metadata": metadata, "spec": _in_containers(spec, _defaulted), "status": {}}


def a_pod(name: str = "pod-1", namespace: str = "team-alpha") -> PodBuilder:
    """A pod without containers; `.asking()` and `.running()` add them."""
    metadata = {"name": name, "namespace": namespace}
    return PodBuilder({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}})


def _container(name: str, resource: str, gpus: object, more: Mapping[str, object]) -> Tree:
    return {"name": name, "image": IMAGE, "resources": {"limits": {resource: gpus}}, **more}


def _in_containers(spec: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """Return a pod's spec with each container changed; values that are no containers stay as they are."""
    changed = dict(spec)
    for role in ("containers", "initContainers"):
        if isinstance(spec.get(role), list):
            changed[role] = [change(each) if isinstance(each, dict) else each for each in spec[role]]
    return changed


def _defaulted(container: Tree) -> Tree:
    mounts = [copied(_TOKEN_MOUNT), *container.get("volumeMounts", [])]
    return _requesting({**copied(_CONTAINER), **container, "volumeMounts": mounts})


def _requesting(container: Tree) -> Tree:
    """Return the container with requests for what has limits alone."""
    resources = container.get("resources")
    if not isinstance(resources, dict) or "limits" not in resources:
        return container
    requests = {**resources["limits"], **resources.get("requests", {})}
    return {**container, "resources": {**resources, "requests": requests}}
