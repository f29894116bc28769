"""A node whose GPUs come by DRA, for the tests that need one."""

from collections.abc import Iterator
from dataclasses import dataclass

from localcluster.fake_nodes import node as fake_node
from tests.builders.claims import a_device, a_device_class, a_slice

from .asking import running
from .installed import Installed, Tree, gpu_pod


@dataclass
class DraDevices:
    """A driver of the test's own, whose devices serve a DeviceClass and a resource."""

    installed: Installed
    namespace: str

    @property
    def name(self) -> str:
        """The DeviceClass."""
        return f"gpu-{self.namespace}"

    @property
    def resource(self) -> str:
        return f"example.com/{self.name}"

    @property
    def driver(self) -> str:
        return f"{self.name}.example.com"

    def device_class(self) -> Tree:
        return a_device_class(self.name, f"device.driver == '{self.driver}'", resource=self.resource).json()

    def node_with(self, node: str, *devices: Tree, **labels: str) -> Iterator[Tree]:
        """A node that no other test uses, with these devices."""
        yield fake_node(node, 0, {"team": self.namespace, **labels})
        yield a_slice(*devices, node=node, driver=self.driver).json()


class Dra(DraDevices):
    """A node with three devices, one of them tainted."""

    @property
    def node(self) -> str:
        return f"dra-{self.namespace}"

    @property
    def plugin_node(self) -> str:
        return f"plugin-{self.namespace}"

    def apply(self, *objects: Tree) -> None:
        self.installed.api.apply(*objects)

    def objects(self) -> Iterator[Tree]:
        yield self.device_class()
        tainted = a_device("c", {"key": "example.com/repair", "effect": "NoSchedule"})
        yield from self.node_with(self.node, a_device("a"), a_device("b"), tainted)

    def pod(self, name: str, tier: str, **spec: object) -> Tree:
        """A pod that asks for the resource, on nodes of this test alone."""
        pod = gpu_pod(name, tier=tier, nodeSelector={"team": self.namespace}, **spec)
        pod["spec"]["containers"][0]["resources"] = {"limits": {self.resource: "1"}}
        return pod

    def start(self, pod: Tree) -> None:
        name = pod["metadata"]["name"]
        assert self.installed.create(pod, self.namespace).code == 0
        self.installed.eventually(lambda: running(self.installed, self.namespace, name), name)

    def warns(self) -> bool:
        """Return whether a dry run is warned that its tier evicts nobody."""
        dry = self.installed.create(self.pod("asks", "gpu-training"), self.namespace, dry_run=True)
        assert dry.code == 0
        return f"[evicts-nobody] kube-scheduler evicts nobody for {self.resource}"[:60] in dry.stderr

    def remove(self) -> None:
        """Delete the pods, the node and what says that it has devices: other tests count nodes."""
        api = self.installed.api
        api.delete("pods", "resourceclaims", namespace=self.namespace, wait=False)
        api.delete(f"resourceslices/{self.node}", f"deviceclasses/{self.name}", f"node/{self.node}")
