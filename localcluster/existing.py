"""A cluster that exists already, reached through its kubeconfig."""

import shutil
import tempfile
from pathlib import Path

from localcluster import components
from localcluster.api import Api, by_proxy
from localcluster.binaries import binaries, find
from localcluster.fake_nodes import STAGES, add_node
from localcluster.kubectl import Kubectl, Result
from localcluster.processes import ProcessGroup
from localcluster.versions import DEFAULT_KUBERNETES
from localcluster.waiting import wait_until

PROXY_SECONDS = 30


class ExistingCluster:
    """Somebody's cluster, with a kwok beside it that answers for the fake nodes added here, and for no others.

    The nodes added here are deleted at the end; kwok starts with the first of them.
    """

    def __init__(self, kubeconfig: Path, minor: str = DEFAULT_KUBERNETES) -> None:
        self.kubeconfig = kubeconfig
        self._binaries = binaries(minor)
        self.folder = Path()
        self.processes = ProcessGroup(self.folder)
        self._nodes: list[str] = []
        self._api: Api | None = None

    @property
    def version(self) -> str:
        """The version that the API server itself reports, such as "v1.37.2"."""
        return str(self.kubectl("get", "--raw=/version").json()["gitVersion"])

    @property
    def api(self) -> Api:
        """The API server through a `kubectl proxy`, which logs in however the kubeconfig says."""
        if not self._api:
            kubectl, socket = find(self._binaries["kubectl"]), self.folder / "proxy.sock"
            command = [str(kubectl), f"--kubeconfig={self.kubeconfig}", "proxy", f"--unix-socket={socket}"]
            self.processes.start("kubectl-proxy", command)
            wait_until(socket.is_socket, PROXY_SECONDS, "kubectl proxy")
            self._api = by_proxy(socket)
        return self._api

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> Result:  # noqa: A002
        """Run kubectl with the kubeconfig's user; KubectlError on a failure, unless `check` is False."""
        return Kubectl(find(self._binaries["kubectl"]), self.kubeconfig)(*arguments, input=input, check=check)

    def apply(self, manifest: str, *arguments: str) -> Result:
        """Run `kubectl apply` with the text of one or several documents."""
        return self.kubectl("apply", "-f", "-", *arguments, input=manifest)

    def add_node(self, name: str, gpus: int = 4, labels: dict[str, str] | None = None) -> None:
        """Add a fake node with GPUs (nvidia.com/gpu) and wait until it is Ready."""
        if not self._nodes:
            self._start_kwok()
        self._nodes.append(name)
        add_node(self.api, name, gpus, labels or {})

    def __enter__(self) -> "ExistingCluster":
        self.folder = Path(tempfile.mkdtemp(prefix="gpu-tiers-"))
        self.processes = ProcessGroup(self.folder)
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            if self._nodes:
                self.api.delete(*(f"node/{each}" for each in self._nodes))
        finally:
            if self._api:
                self._api.close()
            self.processes.stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _start_kwok(self) -> None:
        """Run kwok on a copy of the stages, so that its command line names the folder."""
        stages = self.folder / STAGES.name
        shutil.copyfile(STAGES, stages)
        self.processes.start("kwok", [str(find(self._binaries["kwok"])), *components.kwok(self.kubeconfig, stages)])
