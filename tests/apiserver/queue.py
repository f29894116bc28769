"""A tenant whose pods are queued (onExceed: Hold)."""

from .installed import Installed, Tree, gpu_pod

GATE = {"name": "gpu-tiers.dev/quota"}


class QueueingTenant:
    """A tenant of 8 GPUs whose pods are queued, and a node with room for all of them."""

    def __init__(self, installed: Installed, namespace: str, node: str) -> None:
        self.installed = installed
        self.namespace = namespace
        self.node = node

    def create(self, tree: Tree) -> None:
        answer = self.installed.create(tree, self.namespace)
        assert answer.code == 0, answer.stderr

    def pod(self, name: str, gpus: int = 1, tier: str = "gpu-training") -> Tree:
        return gpu_pod(name, gpus, tier=tier, node=self.node)

    def job(self, name: str, pods: int, tier: str = "gpu-training") -> Tree:
        """A training Job of so many pods of a GPU each."""
        template = gpu_pod("", 1, tier=tier, node=self.node, restartPolicy="Never")
        del template["metadata"]["name"]
        spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
        spec["template"] = {key: template[key] for key in ("metadata", "spec")}
        labels = {"gpu-tiers.dev/tier": tier}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}

    def pods(self) -> list[Tree]:
        return list(self.installed.get("pods", self.namespace)["items"])

    def running(self) -> set[str]:
        return {each["metadata"]["name"] for each in self.pods() if each["status"]["phase"] == "Running"}

    def waiting(self) -> set[str]:
        return {each["metadata"]["name"] for each in self.pods() if GATE in each["spec"].get("schedulingGates", ())}

    def status(self) -> Tree:
        """Return the status of its TenantQuota."""
        found: Tree = self.installed.get(f"tenantquota/hold-{self.namespace}", "").get("status", {})
        return found

    def delete(self, kind: str, *names: str) -> None:
        self.installed.api.delete(*(f"{kind}/{name}" for name in names), namespace=self.namespace, wait=False)

    def eventually_runs(self, *names: str) -> None:
        self.installed.eventually(lambda: set(names) <= self.running(), f"{names} to run")
