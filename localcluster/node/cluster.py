"""Starts a control plane with one real node, and stops both.

All of it lives in namespaces of its own (namespaces.py), so that several can run beside each other.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localcluster.binaries import SHIM, find, node_binaries, release_binaries
from localcluster.control_plane import ControlPlane
from localcluster.credentials import NODE
from localcluster.kubectl import KubectlError
from localcluster.node import components
from localcluster.node.archives import archive, layer_of_program
from localcluster.node.containerd import Containerd
from localcluster.node.namespaces import Namespaces
from localcluster.node.packages import have_packages
from localcluster.processes import Process
from localcluster.versions import DEFAULT_KUBERNETES
from localcluster.waiting import wait_until

GPU = "nvidia.com/gpu"
READY_SECONDS = 240


class NodeCluster(ControlPlane):
    """A control plane and the node `node-0`, whose GPUs are a number and nothing else.

    Use it as `with NodeCluster("1.37", gpus=8) as cluster:`; NodeError if this machine can't run a node.
    """

    def __init__(self, minor: str = DEFAULT_KUBERNETES, *, gpus: int = 8, folder: Path | None = None) -> None:
        super().__init__(minor, folder=folder, kwok=False)
        self.gpus = gpus
        self._node_binaries = node_binaries(minor)
        self._node: Namespaces | None = None

    def __enter__(self) -> "NodeCluster":
        have_packages()
        for binary in self._node_binaries.values():
            find(binary)
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        node, self._node = self._node, None
        if node:
            node.end()
        super().__exit__(*exception)
        if node:
            node.unplug()

    def import_image(self, image: Path) -> None:
        """Make an image archive known to the node; NodeError with containerd's words."""
        self._containerd.import_image(image)

    def ctr(self, *arguments: str) -> list[str]:
        """Return the command line of `ctr` for the node's containerd."""
        return self._containerd.command(*arguments)

    def stop_kubelet(self) -> None:
        """Stop the kubelet; the containers go on, and nobody looks after them."""
        self._end(self.processes.named("kubelet"))

    def kill_containers(self) -> None:
        """Kill all processes in containers, as a power cut does; a kubelet would start them again."""
        self._containerd.kill_all()

    def kill_container(self, container_id: str) -> None:
        """Kill the processes of one container, by the id in its pod's status."""
        self._containerd.kill(container_id.removeprefix("containerd://"))

    def start_kubelet(self) -> None:
        """Start the kubelet and wait until the API server reaches it; TimeoutError after READY_SECONDS."""
        command = components.kubelet(self.node_folder, self._kubeconfig_of("kubelet"), self.address)
        self._run("kubelet", self._path("kubelet"), *command)
        wait_until(self._kubelet_answers, READY_SECONDS, "kubelet")

    @contextmanager
    def devices(self, count: int) -> Iterator[None]:
        """Run Kubernetes' example DRA driver with `count` devices, and delete all ResourceSlices afterwards."""
        program = find(release_binaries()["dra-example-kubeletplugin"])
        command = components.dra_driver(self._kubeconfig_of("dra-driver"), count)
        driver = self._run("dra-driver", str(program), *command)
        try:
            wait_until(lambda: bool(self.api.get("resourceslices")["items"]), READY_SECONDS, "the devices")
            yield
        finally:
            self._end(driver)
            self.api.delete("resourceslices")

    @property
    def name(self) -> str:
        """The name of this machine's end of the node's cable; "" before the node runs and after."""
        return self._node.name if self._node else ""

    @property
    def node_folder(self) -> Path:
        """The node's files, which are deleted with the cluster."""
        return self.folder / "node"

    def _start(self, programs: dict[str, Path]) -> None:
        self.node_folder.mkdir()
        self._node = Namespaces(self.node_folder, self.processes)
        self.address, self.prefix = self._node.address, self._node.in_network()
        try:
            super()._start(programs)
            self._write_settings()
            self._start_node()
        except BaseException:
            self._node.end()
            self._node.unplug()
            self._node = None
            raise

    def _write_settings(self) -> None:
        folder, address = self.node_folder, self.address
        (folder / "cni").mkdir()
        (folder / "cni" / "pods.conflist").write_text(json.dumps(components.pod_network(folder)))
        (folder / "containerd.toml").write_text(components.containerd(folder, self._path(SHIM)))
        (folder / "kubelet.yaml").write_text(components.kubelet_settings(folder, address))
        (folder / "resolv.conf").write_text(f"nameserver {address}\n")
        (folder / "Corefile").write_text(components.dns(self._kubeconfig_of("coredns"), address))

    def _start_node(self) -> None:
        """Start part after part. ProcessError shows the log of one that ended; TimeoutError names one that is late."""
        self._run("containerd", self._path("containerd"), f"--config={self.node_folder / 'containerd.toml'}")
        wait_until(self._containerd_answers, READY_SECONDS, "containerd")
        self.import_image(self._pause_image())
        self._run("kube-proxy", self._path("kube-proxy"), *components.kube_proxy(self._kubeconfig_of("kube-proxy")))
        self._run("coredns", self._path("coredns"), "-conf", str(self.node_folder / "Corefile"))
        self.start_kubelet()
        self._have_gpus()
        self.kubectl("wait", "--for=condition=Ready", f"node/{NODE}", f"--timeout={READY_SECONDS}s")

    def _run(self, name: str, *command: str) -> Process:
        assert self._node  # noqa: S101
        return self.processes.start(name, [*self._node.inside(), *command])

    def _end(self, process: Process) -> None:
        assert self._node  # noqa: S101
        if process.popen.poll() is None:
            self._node.stop(process)
        self.processes.end(process)

    def _path(self, name: str) -> str:
        return str(find(self._node_binaries[name]))

    def _kubeconfig_of(self, user: str) -> Path:
        return self.folder / f"{user}.kubeconfig"

    def _pause_image(self) -> Path:
        layer = layer_of_program(find(self._node_binaries["pause"]), self.node_folder / "pause-layer.tar")
        return archive(components.PAUSE_IMAGE, layer, self.node_folder / "pause.tar", ["/pause"])

    def _have_gpus(self) -> None:
        """Write GPUs into the node's status, as for a device plugin, and wait until they are allocatable."""
        patch = json.dumps({"status": {"capacity": {GPU: str(self.gpus)}}})

        def has_them() -> bool:
            try:
                self.kubectl("patch", "node", NODE, "--subresource=status", "--type=merge", f"--patch={patch}")
                node = self.kubectl("get", "node", NODE, "--output=json").json()
            except KubectlError:
                return False
            return bool(node["status"].get("allocatable", {}).get(GPU) == str(self.gpus))

        wait_until(has_them, READY_SECONDS, f"the GPUs of {NODE}", pause=0.5)

    def _kubelet_answers(self) -> bool:
        return not self.kubectl("get", f"--raw=/api/v1/nodes/{NODE}/proxy/healthz", check=False).code

    def _containerd_answers(self) -> bool:
        self.processes.check()
        return self._containerd.answers()

    @property
    def _containerd(self) -> Containerd:
        return Containerd(self._path("ctr"), self.node_folder / "containerd.sock")
