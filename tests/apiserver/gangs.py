"""PyTorchJobs in a tenant, and what their user and their operator do."""

from typing import Any

from .installed import Installed, Tree, gpu_pod


def pytorchjob(name: str, workers: int, gpus: int = 1, **spec: Any) -> Tree:
    """Return a PyTorchJob as a user writes it: a master, and workers of as many GPUs each."""
    template = gpu_pod("", gpus)
    del template["apiVersion"], template["kind"], template["metadata"]["name"]
    replicas = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": workers, "template": template}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "labels": {"gpu-tiers.dev/tier": "gpu-training"}},
        "spec": {"pytorchReplicaSpecs": replicas, **spec},
    }


class Gangs:
    """A tenant of 8 GPUs of training, and what its user does."""

    def __init__(self, installed: Installed, namespace: str) -> None:
        self.installed = installed
        self.namespace = namespace

    def apply(self, tree: Tree) -> str:
        """Create an object and return the API server's answer."""
        return self.installed.create(tree, self.namespace).stderr

    def pod(self, name: str, of: str, gpus: int = 1) -> str:
        """The operator makes a pod of a PyTorchJob: what it is told."""
        uid = self.installed.get(f"pytorchjob/{of}", self.namespace)["metadata"]["uid"]
        tree = gpu_pod(name, gpus)
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": of, "uid": uid, "controller": True}
        tree["metadata"]["ownerReferences"] = [owner]
        return self.installed.create(tree, self.namespace).stderr

    def patch(self, name: str, patch: Tree) -> str:
        """Patch a PyTorchJob and return the API server's answer."""
        return self.installed.api.patch(f"pytorchjob/{name}", patch, self.namespace, check=False).stderr

    def run(self, *arguments: str) -> str:
        """Another kubectl command: what it prints to stderr."""
        return self.installed.cluster.kubectl(*arguments, f"--namespace={self.namespace}", check=False).stderr

    def delete(self, what: str, seconds: int | None = None, owned: str = "Background") -> None:
        self.installed.api.delete(what, namespace=self.namespace, seconds=seconds, owned=owned)

    def shows(self, usage: str) -> None:
        """`kubectl get tenantquota` shows this before long."""
        self.installed.eventually(
            lambda: self.installed.usage("gang") == usage, f"{usage}, and not {self.installed.usage('gang')}"
        )
