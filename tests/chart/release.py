"""One helm release of the chart on a real API server. Starts no webhook: the configurations call a dead address."""

from pathlib import Path
from typing import Any

from localcluster import Cluster
from localcluster.crds import delete_crd

from .helm import CHART, Answer, helm

DEAD = "https://127.0.0.1:9"
"""Nobody listens on the discard port, so the API server is refused at once instead of waiting its 5 s."""

NAME, OTHER = "gpu-tiers", "other"
CONFIGURATION = "zz-gpu-tiers"


class Release:
    """helm install, upgrade and uninstall of gpu-tiers in a namespace of the same name."""

    def __init__(self, cluster: Cluster, home: Path, program: str | None = None) -> None:
        self.cluster = cluster
        self._home = home
        self._program = program
        self._releases = {NAME}

    def install(self, **values: object) -> Answer:
        """`helm install`; without a webhook.url, of a webhook outside the cluster that is dead."""
        return self._done(self.try_install(NAME, **values))

    def try_install(self, release: str, /, **values: object) -> Answer:
        self._releases.add(release)
        return self._helm("install", release, "--create-namespace", values=values)

    def upgrade(self, **values: object) -> Answer:
        return self._done(self.try_upgrade(**values))

    def try_upgrade(self, **values: object) -> Answer:
        return self._helm("upgrade", NAME, values=values)

    def run(self, command: str, *arguments: str, **values: object) -> Answer:
        """A helm command about this release, with these arguments, which name the chart, and these values alone."""
        return self._run(command, NAME, f"--namespace={NAME}", *arguments, values=values or None)

    def uninstall(self) -> Answer:
        """Uninstall without the Job at its end, because no node runs that."""
        arguments = ("uninstall", NAME, f"--namespace={NAME}", "--no-hooks")
        return self._done(self._run(*arguments))

    def entries(self) -> dict[str, dict[str, Any]]:
        """The entries of the validating configuration, as the API server has them."""
        live = self.get("validatingwebhookconfiguration", CONFIGURATION)
        return {entry["name"]: entry for entry in live["webhooks"]}

    def get(self, kind: str, name: str = "") -> dict[str, Any]:
        """A list, or an object of the release's namespace or of none."""
        return self.cluster.api.get(f"{kind}/{name}" if name else kind, NAME)

    def names(self, kind: str) -> list[str]:
        return [each["metadata"]["name"] for each in self.get(kind)["items"]]

    def wipe(self) -> None:
        """Leave a cluster that has never seen the chart, but for the empty namespaces: those take long to go."""
        for name in self._releases:
            self._helm("uninstall", name, "--no-hooks")
        ours = [name for name in self.names("priorityclass") if not name.startswith("system-")]
        if ours:
            self.cluster.api.delete(*(f"priorityclass/{name}" for name in ours))
        for crd in self.names("crd"):
            if crd.endswith("gpu-tiers.dev"):
                delete_crd(self.cluster, crd)

    def _helm(self, command: str, name: str, *more: str, values: dict[str, object] | None = None) -> Answer:
        arguments = [command, name, f"--namespace={name}", *more]
        if values is not None:
            # It takes half of helm's time. test_combinations.py has the API server look at each field instead.
            arguments[2:2] = [str(CHART), "--disable-openapi-validation"]
            values = {"webhook": {"url": DEAD}} | values
        return self._run(*arguments, values=values)

    def _run(self, *arguments: str, values: dict[str, object] | None = None) -> Answer:
        return helm(
            *arguments, home=self._home, kubeconfig=self.cluster.kubeconfig, values=values, program=self._program
        )

    @staticmethod
    def _done(answer: Answer) -> Answer:
        assert not answer.code, answer.stderr
        return answer
