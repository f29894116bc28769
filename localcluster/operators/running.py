"""Runs one operator as a process of this machine, under its own ServiceAccount."""

import base64
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from localcluster.binaries import find
from localcluster.cluster import Cluster
from localcluster.operators.certificates import looked_for, write_certificate
from localcluster.operators.manifests import install, uninstall_webhooks
from localcluster.operators.operator import Operator, filled
from localcluster.ports import free_ports, is_free
from localcluster.waiting import answers_ready, wait_until

READY_SECONDS = 240
ONE_DAY = "24h"


class RunningOperator:
    """An operator that runs and is ready. It stops with the cluster at the latest."""

    def __init__(self, cluster: Cluster, operator: Operator) -> None:
        self.cluster = cluster
        self.operator = operator
        self.folder = cluster.folder / operator.name
        self.folder.mkdir(exist_ok=True)
        self.webhook, self.probe = free_ports(2)
        self._places = {
            "webhook": str(self.webhook),
            "probe": str(self.probe),
            "folder": str(self.folder),
            "config": str(self.folder / "config.yaml"),
            "certificates": str(self.certificates),
        }
        program = find(operator.binary)
        self._applied = install(cluster, operator, self.webhook)
        self._command = self._command_of(program)
        if operator.certificate_of:
            write_certificate(self.certificates, operator.certificate_of, operator.namespace)
        self.process = cluster.processes.start(operator.name, self._command)
        if operator.serving_certificate:
            self._mount_certificate()
            self.kill()
            self.process = cluster.processes.start(operator.name, self._command)
        self._wait_until_it_works()

    @property
    def certificates(self) -> Path:
        """The folder where the operator's webhook looks for its certificate."""
        return self.folder / self.operator.mounted_at

    def start(self) -> None:
        """Start the operator again after its end, and wait until it works; ProcessError if it doesn't."""
        self.process = self.cluster.processes.start(self.operator.name, self._command)
        self._wait_until_it_works()

    def kill(self) -> None:
        """Kill the operator at once; what it has applied stays."""
        self.process.popen.kill()
        self.cluster.processes.end(self.process)

    def end(self) -> None:
        """Stop the operator if it runs, and delete its webhook configurations."""
        if self.process.popen.poll() is None:
            self.cluster.processes.end(self.process)
        uninstall_webhooks(self.cluster, self._applied)

    def log(self) -> str:
        """Return the whole log of the operator."""
        return self.process.log.read_text(errors="replace")

    def _command_of(self, program: Path) -> list[str]:
        """Write its files, and return its command line, which names the cluster's folder for the reaper."""
        operator = self.operator
        (self.folder / "kubeconfig").write_text(self._own_kubeconfig())
        Path(self._places["config"]).write_text(filled(operator.configuration, self._places))
        variables = {"KUBECONFIG": "$folder/kubeconfig", **operator.environment}
        words = [f"{name}={value}" for name, value in variables.items()]
        arguments = [each for each in (operator.kubeconfig, *operator.arguments) if each]
        return ["env", *self._filled(words), str(program), *self._filled(arguments)]

    def _filled(self, texts: list[str]) -> list[str]:
        return [filled(each, self._places) for each in texts]

    def _own_kubeconfig(self) -> str:
        """Return the cluster's kubeconfig with the ServiceAccount's token in place of the administrator's."""
        named = (f"--namespace={self.operator.namespace}", self.operator.account, f"--duration={ONE_DAY}")
        token = self.cluster.kubectl("create", "token", *named).stdout.strip()
        config = self.cluster.kubectl("config", "view", "--minify", "--raw", "--flatten", "--output=json").json()
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        return json.dumps(config)

    def _wait_until_it_works(self) -> None:
        with looked_for() if self.operator.serving_certificate else nullcontext():
            self._wait(self._works, "was not ready")

    def _works(self) -> bool:
        """Tell whether it is ready. Some operators say so before their webhook listens."""
        path, listens = self.operator.ready, not is_free(self.webhook)
        if not path:
            return listens
        return answers_ready(self.probe, path) and (listens or not self.operator.serving_certificate)

    def _wait(self, holds: Callable[[], bool], otherwise: str) -> None:
        def asked() -> bool:
            self.process.check()
            return holds()

        try:
            wait_until(asked, READY_SECONDS, self.operator.name, pause=0.3)
        except TimeoutError:
            raise self.process.failure(f"{otherwise} within {READY_SECONDS} s") from None

    def _mount_certificate(self) -> None:
        """Wait until the operator has filled its Secret, and copy it to where a kubelet would have mounted it."""
        self._wait(lambda: "tls.key" in self._secret(), "did not fill its Secret")
        self.certificates.mkdir(parents=True, exist_ok=True)
        for name, content in self._secret().items():
            (self.certificates / name).write_bytes(base64.b64decode(content))

    def _secret(self) -> dict[str, str]:
        named = (f"--namespace={self.operator.namespace}", self.operator.serving_certificate)
        return dict(self.cluster.kubectl("get", "secret", *named, "--output=json").json().get("data") or {})
