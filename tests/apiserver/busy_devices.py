"""A cluster that never rests, for preemption by devices: claims of another driver come and go, and so do low pods.

kube-scheduler tries pods again whenever a claim is freed, those first that have waited least. In a quiet cluster the
pod for which others were evicted gets their devices in any case, so a test there would show nothing.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count

from localcluster.api import ApiError
from localcluster.fake_nodes import node as fake_node
from localcluster.processes import ProcessError
from tests.builders.claims import a_device, a_device_class, a_slice

from .dra import DraDevices
from .installed import Tree, gpu_pod

GRACEFUL = {"localcluster.gpu-tiers.dev/uses-its-grace": "true"}


@dataclass
class Busy(DraDevices):
    """Nodes of a test alone, with devices of the test's own."""

    nodes: list[str] = field(default_factory=list)
    by = "claim"

    def node(self, name: str) -> str:
        return f"{name}-{self.namespace}"

    def add_nodes(self, *names: str, devices: int = 1, **labels: str) -> None:
        self.installed.api.apply(self.device_class(), *map(self.template, (1, 2, 4)))
        self.nodes += map(self.node, names)
        for each in map(self.node, names):
            found = (a_device(f"d{number}") for number in range(devices))
            self.installed.api.apply(*self.node_with(each, *found, **labels))

    def template(self, gpus: int, namespace: str = "") -> Tree:
        exactly = {"deviceClassName": self.name, "allocationMode": "ExactCount", "count": gpus}
        devices = {"requests": [{"name": "gpu", "exactly": exactly}]}
        metadata = {"name": f"gpus-{gpus}", "namespace": namespace or self.namespace}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": metadata,
            "spec": {"spec": {"devices": devices}},
        }

    def pod(self, name: str, tier: str, gpus: int = 1, *, by: str = "claim", grace: int = 0, **spec: object) -> Tree:
        """A pod on any of the nodes. With a `grace` it ends when that is over."""
        pod = gpu_pod(name, tier=tier, **{"nodeSelector": {"team": self.namespace}, **spec})
        container = pod["spec"]["containers"][0]
        if by in ("resource", "plugin"):
            asked = self.resource if by == "resource" else "nvidia.com/gpu"
            container["resources"] = {"limits": {asked: str(gpus)}}
        else:
            container["resources"] = {"claims": [{"name": "gpu"}]}
            pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": f"gpus-{gpus}"}]
        if grace:
            pod["spec"]["terminationGracePeriodSeconds"] = grace
            pod["metadata"]["annotations"] = dict(GRACEFUL)
        return pod

    def job(self, name: str, tier: str, gpus: int = 1, *, pods: int = 1, **spec: object) -> Tree:
        """A Job of such pods, which run at once."""
        template = self.pod("", tier, gpus, restartPolicy="Never", **spec)
        labels = template["metadata"]["labels"]
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "labels": labels},
            "spec": {"parallelism": pods, "completions": pods, "template": {"spec": template["spec"]}},
        }

    def create(self, *objects: Tree) -> None:
        for each in objects:
            made = self.installed.create(each, self.namespace)
            assert made.code == 0, made.stderr

    def fill(self, pods: int, grace: Callable[[], int]) -> None:
        """Have pods of a low tier hold as many devices."""
        names = [f"low-{number}" for number in range(pods)]
        self.create(*(self.pod(each, "gpu-batch", grace=grace()) for each in names))
        self.installed.eventually(lambda: all(map(self.on, names)), "all devices in use")

    def on(self, name: str, namespace: str = "") -> str:
        """The node of a pod; "" where it has none, or is not there."""
        with suppress(ApiError):
            return str(self.installed.get(f"pod/{name}", namespace or self.namespace)["spec"].get("nodeName", ""))
        return ""

    def reserved(self) -> dict[str, str]:
        """The tier for which each of its nodes is reserved."""
        found = self.installed.api.get("nodes", labelSelector=f"team={self.namespace}")["items"]
        taints = {each["metadata"]["name"]: each["spec"].get("taints", []) for each in found}
        return {
            name: taint["value"]
            for name, each in taints.items()
            for taint in each
            if taint["key"].startswith("gpu-tiers")
        }

    @contextmanager
    def unrest(
        self,
        tier: str = "gpu-batch",
        *,
        by: str = "claim",
        grace: Callable[[], int] = lambda: 0,
        namespace: str = "",
        **spec: object,
    ) -> Iterator[None]:
        """Every 4 s a claim elsewhere is freed, and three times a second a pod of a low tier is made."""
        over = threading.Event()
        if namespace:
            self.installed.api.apply(self.template(1, namespace))

        def fresh(name: str) -> Tree:
            return self.pod(name, tier, by=by, grace=grace(), **spec)

        tasks = [
            threading.Thread(target=self._freeing, args=(over,)),
            threading.Thread(target=self._fresh_pods, args=(over, fresh, namespace or self.namespace)),
        ]
        for each in tasks:
            each.start()
        try:
            yield
        finally:
            over.set()
            for each in tasks:
                each.join()
            if namespace:
                self.installed.api.delete("resourceclaimtemplate/gpus-1", namespace=namespace)
                self.installed.api.delete("pods", namespace=namespace, seconds=0, wait=False)

    def _freeing(self, over: threading.Event) -> None:
        """A pod on another node, with a device of another driver, ends and is made anew."""
        other, api = f"other-{self.namespace}", self.installed.api
        api.apply(
            fake_node(other, 0, {"other": self.namespace}),
            a_device_class(other, f"device.driver == '{other}.example.com'").json(),
            a_slice(a_device("o"), node=other, driver=f"{other}.example.com").json(),
        )
        exactly = {"deviceClassName": other, "allocationMode": "ExactCount", "count": 1}
        template = self.template(1)
        template["metadata"]["name"] = "other"
        template["spec"]["spec"]["devices"]["requests"][0]["exactly"] = exactly
        api.apply(template)
        for number in count():
            if over.is_set():
                break
            pod = gpu_pod(f"other-{number}", nodeSelector={"other": self.namespace})
            pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
            pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "other"}]
            self.installed.create(pod, self.namespace)
            over.wait(3.0)
            with suppress(ApiError):
                api.delete(f"pod/other-{number}", namespace=self.namespace, wait=False)
            over.wait(1.0)
        api.delete(f"resourceslice/{other}", f"deviceclass/{other}", f"node/{other}")

    def _fresh_pods(self, over: threading.Event, pod: Callable[[str], Tree], namespace: str) -> None:
        """The last ten of them wait; those before are deleted, politely and unscheduled."""
        for number in count():
            if over.wait(0.33):
                break
            with suppress(ApiError, ProcessError):  # the test may be changing the leader
                self.installed.create(pod(f"fresh-{number}"), namespace)
                if number >= 10 and not self.on(f"fresh-{number - 10}", namespace):
                    self.installed.api.delete(f"pod/fresh-{number - 10}", namespace=namespace, wait=False)

    def remove(self) -> None:
        api = self.installed.api
        api.delete("replicasets", "jobs", namespace=self.namespace, wait=False)
        api.delete("pods", namespace=self.namespace, seconds=1, wait=False)
        for each in self.nodes:
            api.delete(f"resourceslice/{each}", f"node/{each}")
        api.delete(f"deviceclass/{self.name}")


def seconds_until(holds: object, seconds: float = 60.0) -> float:
    """How long it takes until something holds."""
    began = time.monotonic()
    while not holds():  # type: ignore[operator]
        if time.monotonic() - began > seconds:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.1)
    return time.monotonic() - began
