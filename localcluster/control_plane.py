"""Starts a real control plane on one address and free ports, and stops it in order. It has no kubelet.

The API server stops before etcd: the other way round its shutdown hangs for more than a minute.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from localcluster import components
from localcluster.api import Api, by_token
from localcluster.binaries import binaries, find
from localcluster.credentials import write_credentials
from localcluster.fake_nodes import STAGES, add_node
from localcluster.kubectl import Kubectl, KubectlError, Result
from localcluster.ports import free_ports
from localcluster.processes import Process, ProcessError, ProcessGroup
from localcluster.versions import DEFAULT_KUBERNETES, kubernetes
from localcluster.waiting import wait_until

READY_SECONDS = 240


class ControlPlane:
    """etcd, API server and, unless switched off, controller manager, scheduler and kwok.

    Use it as `with ControlPlane("1.37") as cluster:`. Its folder with the logs is a new one in the temp folder, or
    `folder`, emptied. It is deleted after the `with` block, unless a part did not start (ProcessError),
    or `folder` was given and the block failed. `apiserver_options`: more of the API server's command line.
    `controllers`: those that the controller manager runs.
    """

    def __init__(
        self,
        minor: str = DEFAULT_KUBERNETES,
        *,
        folder: Path | None = None,
        controller_manager: bool = True,
        controllers: Sequence[str] = ("*",),
        scheduler: bool = True,
        kwok: bool = True,
        feature_gates: Sequence[str] = (),
        apiserver_options: Sequence[str] = (),
    ) -> None:
        self.kubernetes = kubernetes(minor)
        self.folder = Path()
        self.processes = ProcessGroup(self.folder)
        self._optional = {"kube-controller-manager": controller_manager, "kube-scheduler": scheduler, "kwok": kwok}
        self._gates = ",".join(f"{gate}=true" for gate in (*self.kubernetes.feature_gates, *feature_gates))
        self._apiserver_options, self._controllers = apiserver_options, controllers
        self._binaries = binaries(minor)
        self._wanted_folder = folder
        self._apiserver_command: Sequence[str] = ()
        self._api: Api | None = None
        self.address = components.LOOPBACK
        self.prefix: list[str] = []
        """The words before each part's command line, to start it in the network that has `address`."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "admin.kubeconfig"

    @property
    def version(self) -> str:
        """The version that the API server itself reports, such as "v1.37.2"."""
        return str(self.kubectl("get", "--raw=/version").json()["gitVersion"])

    @property
    def api(self) -> Api:
        """The API server over HTTP, as the administrator; ProcessError if a part of the cluster has ended."""
        self._api = self._api or by_token(self.kubeconfig, self.processes.check)
        return self._api

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> Result:  # noqa: A002
        """Run kubectl as the administrator; KubectlError on a failure, unless `check` is False.

        ProcessError instead if a part of the cluster, or a process beside it, has ended, because that is the cause.
        """
        self.processes.check()
        try:
            return self._kubectl(*arguments, input=input, check=check)
        except KubectlError:
            self.processes.check()
            raise

    @property
    def _kubectl(self) -> Kubectl:
        return Kubectl(find(self._binaries["kubectl"]), self.kubeconfig)

    @property
    def etcd_url(self) -> str:
        """The address of etcd, in plain HTTP."""
        prefix = "--listen-client-urls="
        return next(each.removeprefix(prefix) for each in self.processes.named("etcd").command if prefix in each)

    def apply(self, manifest: str, *arguments: str) -> Result:
        """Run `kubectl apply` with the text of one or several documents."""
        return self.kubectl("apply", "-f", "-", *arguments, input=manifest)

    def add_node(self, name: str, gpus: int = 4, labels: dict[str, str] | None = None) -> None:
        """Add a fake node with GPUs (nvidia.com/gpu) and wait until it is Ready."""
        add_node(self.api, name, gpus, labels or {})

    def __enter__(self) -> "ControlPlane":
        programs = {name: find(binary) for name, binary in self._binaries.items() if self._optional.get(name, True)}
        self.folder = self._new_folder()
        self.processes = ProcessGroup(self.folder)
        try:
            self._start(programs)
        except ProcessError:
            self.processes.stop()
            raise
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._api:
            self._api.close()
            self._api = None
        self.processes.stop()
        failed = any(isinstance(each, Exception) for each in exception)
        if not (failed and self._wanted_folder):
            shutil.rmtree(self.folder, ignore_errors=True)

    def _new_folder(self) -> Path:
        if not self._wanted_folder:
            return Path(tempfile.mkdtemp(prefix="gpu-tiers-"))
        shutil.rmtree(self._wanted_folder, ignore_errors=True)
        self._wanted_folder.mkdir(parents=True, mode=0o700)
        return self._wanted_folder

    def _start(self, programs: dict[str, Path]) -> None:
        """Start part after part; ProcessError shows the log of the one that failed."""
        client, peer, port = free_ports(3)
        write_credentials(self.folder, f"https://{self.address}:{port}")
        apiserver = components.apiserver(self.folder, self.kubernetes, self.address, port, client, self._gates)
        commands = {
            "etcd": components.etcd(self.folder, client, peer),
            "kube-apiserver": [*apiserver, *self._apiserver_options],
            "kube-controller-manager": components.controller_manager(self.folder, self._gates, self._controllers),
            "kube-scheduler": components.scheduler(self.folder, self._gates),
            "kwok": components.kwok(self.folder / "kwok.kubeconfig", STAGES),
        }
        ready = {"kube-apiserver": self._answers, "kube-controller-manager": self._takes_pods}
        for name in (name for name in commands if name in programs):
            process = self.processes.start(name, [*self.prefix, str(programs[name]), *commands[name]])
            if name in ready:
                self._wait(process, ready[name])
        self._apiserver_command = self.processes.named("kube-apiserver").command

    def _wait(self, process: Process, is_ready: Callable[[], bool]) -> None:
        try:
            wait_until(is_ready, READY_SECONDS, process.name, pause=0.2)
        except TimeoutError:
            raise process.failure(f"was not ready within {READY_SECONDS} s") from None

    def restart_apiserver(self, *options: str) -> None:
        """Kill the API server in the middle of its requests, start it again, and wait until it answers.

        ProcessError if it does not answer within READY_SECONDS. The options are appended to those of its first start,
        and override them until the next restart.
        """
        process = self.processes.named("kube-apiserver")
        process.popen.kill()
        self.processes.end(process)
        process = self.processes.start("kube-apiserver", [*self._apiserver_command, *options])

        def answers() -> bool:
            process.check()
            return not self._kubectl("get", "--raw=/version", "--request-timeout=5s", check=False).code

        self._wait(process, answers)

    def _answers(self) -> bool:
        return not self.kubectl("get", "--raw=/readyz", check=False).code

    def _takes_pods(self) -> bool:
        """Tell whether the namespace has its default ServiceAccount, because without it a pod is refused."""
        return not self.kubectl("get", "serviceaccount", "default", "--namespace=default", check=False).code
