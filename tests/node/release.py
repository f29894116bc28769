"""The chart's release on the real node, and what the API server says through it."""

import json
from typing import Any

from installation.examples import example_policy
from installation.helm import RELEASE, ROOT, helm
from installation.readiness import wait_for_webhook
from localcluster import Result
from localcluster.node import NodeCluster
from localcluster.processes import ProcessError
from localcluster.waiting import wait_until

CHART = str(ROOT / "charts" / "gpu-tiers")
NAMESPACE = f"--namespace={RELEASE}"
VALUES = {
    "mode": "Enforce",
    "policy": example_policy(),
    "createTimeoutSeconds": 15,
    "reports": {"enabled": True},
}
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}

Tree = dict[str, Any]


class Release:
    """gpu-tiers in the namespace gpu-tiers, which admits restricted pods only."""

    def __init__(self, cluster: NodeCluster) -> None:
        self.cluster = cluster
        self.installed = True
        cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": RELEASE}})
        cluster.api.label(f"namespace/{RELEASE}", RESTRICTED)
        try:
            self.helm("install", RELEASE, CHART, "--values=-", "--wait", "--timeout=240s", input=json.dumps(VALUES))
        except ProcessError as error:
            raise AssertionError(f"{error}\n{self._said()}") from None
        wait_for_webhook(cluster)
        wait_until(self._is_led, 240, "a replica that leads")

    def helm(self, *arguments: str, input: str | None = None) -> None:  # noqa: A002
        """Run helm on the release's namespace; ProcessError with its words."""
        helm(self.cluster, *arguments, NAMESPACE, input=input)

    def upgrade(self, **values: object) -> None:
        """`helm upgrade` with these values beside the first ones; it returns once the new pod is ready."""
        chosen = json.dumps(VALUES | values)
        self.helm("upgrade", RELEASE, CHART, "--values=-", "--wait", "--timeout=180s", input=chosen)

    def pods(self) -> int:
        """Return how many of its pods there are, with those that end."""
        return len(self.get("pods")["items"])

    def wait_for_pods(self) -> None:
        """Wait until the release's pods are those that it wants, and ready."""
        self.cluster.kubectl("rollout", "status", "deployment/gpu-tiers", NAMESPACE, "--timeout=240s")

    def _is_led(self) -> bool:
        """Before that nobody knows the GPUs of a pod that is gone."""
        return bool(self.get("lease/gpu-tiers")["spec"].get("holderIdentity"))

    def _said(self) -> str:
        """Return the last log lines of the webhook's pod, and its state."""
        logs = self.cluster.kubectl(
            "logs", "-l", "app.kubernetes.io/name=gpu-tiers", "--prefix", NAMESPACE, "--tail=20", check=False
        )
        events = self.cluster.kubectl("get", "events", NAMESPACE, check=False)
        return f"{logs.stdout}\n{logs.stderr}\n{events.stdout}"

    def uninstall(self) -> None:
        """Leave the cluster without it, once."""
        if self.installed:
            self.helm("uninstall", RELEASE, "--wait", "--timeout=240s")
            self.installed = False

    def get(self, what: str) -> Tree:
        """One object, of the release's namespace or of none."""
        return self.cluster.api.get(what, RELEASE)

    def configurations(self) -> list[Tree]:
        """Return both webhook configurations."""
        return [self.get(f"{kind}webhookconfiguration/zz-gpu-tiers") for kind in ("mutating", "validating")]

    def asked(self, pod: Tree, namespace: str) -> Result:
        """Return the pod as the API server would store it, without storing it."""
        return self.cluster.api.create(pod, namespace, dry_run=True, check=False)
