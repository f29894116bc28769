"""Records the states of pods, also of those that are gone before anybody could ask."""

import json
from typing import Any

from localcluster.binaries import binaries, find
from localcluster.node import NodeCluster
from localcluster.processes import Process

Tree = dict[str, Any]


class Watched:
    """The states of a namespace's pods, from now on."""

    def __init__(self, node: NodeCluster, namespace: str) -> None:
        self.node = node
        kubectl = str(find(binaries(node.kubernetes.minor)["kubectl"]))
        command = ["get", "pods", f"--namespace={namespace}", "--watch", "--output-watch-events", "--output=json"]
        name = f"watch-{namespace}"
        self.process: Process = node.processes.start(name, [kubectl, f"--kubeconfig={node.kubeconfig}", *command])

    def end(self) -> None:
        """Stop writing."""
        self.node.processes.end(self.process)

    def changes(self) -> list[Tree]:
        """Return the watch's events so far, the oldest first, without a half-written last one."""
        text, decoder, found = self.process.log.read_text(), json.JSONDecoder(), []
        while text := text.lstrip():
            try:
                change, length = decoder.raw_decode(text)
            except json.JSONDecodeError:
                break
            found.append(change)
            text = text[length:]
        return found

    def states(self) -> list[Tree]:
        """Return the states so far, the oldest first."""
        return [change["object"] for change in self.changes()]

    def has_gone(self, uid: str) -> bool:
        """Whether the pod's last state is written, which comes some time after others see its end."""
        ends = (each["object"] for each in self.changes() if each["type"] == "DELETED")
        return any(each["metadata"]["uid"] == uid for each in ends)

    def container(self, uid: str) -> str:
        """The id that a pod's only container has at its runtime."""
        ids = (
            status["containerID"]
            for state in self.states()
            if state["metadata"]["uid"] == uid
            for status in state.get("status", {}).get("containerStatuses", [])
            if status.get("containerID")
        )
        return str(next(ids)).partition("://")[2]

    def exit_codes(self, uid: str) -> set[int]:
        """The codes with which a pod's containers ended."""
        statuses = [
            status
            for state in self.states()
            if state["metadata"]["uid"] == uid
            for status in state.get("status", {}).get("containerStatuses", [])
        ]
        return {status["state"]["terminated"]["exitCode"] for status in statuses if "terminated" in status["state"]}

    def disruptions(self, uid: str) -> set[str]:
        """The reasons that a pod's DisruptionTarget condition gave."""
        conditions = [
            condition
            for state in self.states()
            if state["metadata"]["uid"] == uid
            for condition in state.get("status", {}).get("conditions", [])
        ]
        return {each["reason"] for each in conditions if each["type"] == "DisruptionTarget"}


def reasons(node: NodeCluster, namespace: str, uid: str) -> list[str]:
    """The reasons of a pod's events."""
    found = node.api.get("events", namespace)["items"]
    return [each["reason"] for each in found if each["involvedObject"].get("uid") == uid]
