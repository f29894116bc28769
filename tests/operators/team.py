"""A team: its actions in its namespace, and what it sees there."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from localcluster.waiting import wait_until
from tests.apiserver.installed import Installed

SECONDS = 240
TIER = "gpu-tiers.dev/tier"
GATE = {"name": "gpu-tiers.dev/quota"}
LOST_NODE = (
    "Warning: [lost-node] added podFailurePolicy: pods on a lost node are replaced once it is deleted or tainted "
    "out-of-service\n"
)
"""All that `kubectl apply` prints of a workload whose Jobs get a podFailurePolicy."""

Tree = dict[str, Any]


class Team:
    """One namespace, and the tenant of its name."""

    def __init__(self, installed: Installed, namespace: str) -> None:
        self.installed = installed
        self.namespace = namespace

    def may_use(self, *rows: Tree, **spec: object) -> None:
        """The administrator gives it these rows, and they are active."""
        self.installed.tenant(self.namespace, self.namespace, quotas=list(rows), **spec)

    def wait_for_service_account(self) -> None:
        """Wait for the ServiceAccount without which the pods of controllers are refused for some moments."""
        get = ("get", "serviceaccount", "default", f"--namespace={self.namespace}")
        self.eventually(lambda: not self.kubectl(*get, check=False).code, "the ServiceAccount")

    def leave(self) -> None:
        """The administrator removes it; nobody waits for the end."""
        self.kubectl("delete", "tenantquota", self.namespace)
        self.kubectl("delete", "namespace", self.namespace, "--wait=false")

    def apply(self, *trees: Tree) -> str:
        """`kubectl apply`: what it prints to stderr."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(trees)}
        command = ("apply", f"--namespace={self.namespace}", "-f", "-")
        return str(self.kubectl(*command, input=json.dumps(items), check=False).stderr)

    def patch(self, what: str, patch: Tree) -> str:
        """`kubectl patch`: what it prints to stderr."""
        command = ("patch", what, f"--namespace={self.namespace}", "--type=merge", f"--patch={json.dumps(patch)}")
        return str(self.kubectl(*command, check=False).stderr)

    def delete(self, what: str) -> None:
        """`kubectl delete`, without waiting for the end."""
        self.kubectl("delete", what, f"--namespace={self.namespace}", "--wait=false")

    def get(self, what: str) -> Tree:
        """One object, or a list."""
        found: Tree = self.kubectl("get", what, f"--namespace={self.namespace}", "--output=json").json()
        return found

    def pods(self) -> list[Tree]:
        """Return the pods that are not being deleted."""
        return [each for each in self.get("pods")["items"] if "deletionTimestamp" not in each["metadata"]]

    def runs(self, count: int) -> list[Tree]:
        """Wait until so many pods run, and no others are there; return them."""
        self.eventually(
            lambda: [each["status"]["phase"] for each in self.pods()] == ["Running"] * count, f"{count} running pods"
        )
        return self.pods()

    def waits(self, count: int) -> None:
        """Wait until so many pods stand behind our gate."""
        gated = lambda: [each for each in self.pods() if GATE in each["spec"].get("schedulingGates", ())]  # noqa: E731
        self.eventually(lambda: len(gated()) == count, f"{count} pods that wait")

    def makes_room(self) -> None:
        """The pod that filled the quota ends."""
        self.delete("pod/there")

    def condition(self, what: str, kind: str) -> Tree:
        """A condition of an object; nothing while it has none."""
        found = self.get(what).get("status", {}).get("conditions", ())
        return next((each for each in found if each["type"] == kind), {})

    def phases(self) -> Counter[str]:
        """Return how many of its pods are in which phase."""
        return Counter(each["status"]["phase"] for each in self.pods())

    def tiers(self) -> set[tuple[str, str, int]]:
        """The tier, the class and the priority of its pods; empty ones and 0 of a pod that has none."""
        return {
            (
                each["metadata"].get("labels", {}).get(TIER, ""),
                each["spec"].get("priorityClassName", ""),
                each["spec"]["priority"],
            )
            for each in self.pods()
        }

    def fails(self, pod: Tree) -> None:
        """The program in a pod ends with an error."""
        what = ("patch", "pod", pod["metadata"]["name"], f"--namespace={self.namespace}")
        status = {"phase": "Failed", "reason": "Error", "message": "the program ended with 1"}
        self.kubectl(*what, "--subresource=status", "--type=merge", f"--patch={json.dumps({'status': status})}")

    def succeeds(self, pod: Tree) -> None:
        """The program in a pod ends as it should."""
        what = ("patch", "pod", pod["metadata"]["name"], f"--namespace={self.namespace}")
        self.kubectl(*what, "--subresource=status", "--type=merge", '--patch={"status": {"phase": "Succeeded"}}')

    def ends(self, pod: Tree, code: int) -> None:
        """Let its programs end by themselves with that exit code, as a kubelet says it."""
        ended = {"terminated": {"exitCode": code, "reason": "Error"}}
        statuses = [
            {"name": each["name"], "image": each["image"], "imageID": "", "ready": False, "restartCount": 0}
            | {"state": ended}
            for each in pod["spec"]["containers"]
        ]
        what = ("patch", "pod", pod["metadata"]["name"], f"--namespace={self.namespace}")
        patch = {"status": {"phase": "Failed", "containerStatuses": statuses}}
        self.kubectl(*what, "--subresource=status", "--type=merge", f"--patch={json.dumps(patch)}")

    def evicts(self, pod: Tree) -> None:
        """Drain its node: the pod bears DisruptionTarget, its hook runs, and it ends with 143."""
        name = pod["metadata"]["name"]
        tree = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": self.namespace}}
        path = f"--raw=/api/v1/namespaces/{self.namespace}/pods/{name}/eviction"
        self.kubectl("create", path, "-f", "-", input=json.dumps(tree))

    def scales(self, what: str, replicas: int) -> str:
        """`kubectl scale`: what it prints to stderr."""
        command = ("scale", what, f"--namespace={self.namespace}", f"--replicas={replicas}")
        return str(self.kubectl(*command, check=False).stderr)

    def shows_event(self, what: str, sentence: str) -> None:
        """An event on that object says so before long."""
        command = ("events", f"--namespace={self.namespace}", f"--for={what}", "--output=json")
        self.eventually(
            lambda: any(sentence in each["message"] for each in self.kubectl(*command).json()["items"]),
            f"an event on {what}: {sentence}",
        )

    def shows(self, usage: str) -> None:
        """`kubectl get tenantquota` shows this before long."""
        self.eventually(lambda: self.usage() == usage, f"{usage}, and not {self.usage()}")

    def usage(self) -> str:
        """Return the usage that `kubectl get tenantquota` shows."""
        return self.installed.usage(self.namespace)

    def eventually(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for what the cluster brings about; the machine may be busy."""
        wait_until(holds, SECONDS, what, pause=0.5)

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> Any:  # noqa: A002
        """Run kubectl as the administrator."""
        return self.installed.cluster.kubectl(*arguments, input=input, check=check)


def hooked(pod: Tree) -> list[str]:
    """The names of the containers with a preStop hook."""
    return [each["name"] for each in pod["spec"]["containers"] if "preStop" in each.get("lifecycle", {})]


def uids(pods: list[Tree]) -> set[str]:
    """The uids of pods."""
    return {each["metadata"]["uid"] for each in pods}
