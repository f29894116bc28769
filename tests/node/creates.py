"""Creates pods at a steady pace while something else happens, and keeps each answer."""

import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import httpx
import yaml

from demonstration.workloads import Tree, gpu_pod
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until

PAUSE = 0.2
"""Seconds between two creates of a stream: five a second at most."""
MOST = 4000
SECONDS = 240
GATED: Tree = {"schedulingGates": [{"name": "example.com/held"}]}
"""What keeps the scheduler and the kubelet out of it: hundreds of pods are stored, none runs."""


@dataclass(frozen=True)
class Answer:
    """The API server's answer to one create; the message is what kubectl prints."""

    name: str
    at: float
    code: int
    message: str


class Creates:
    """Streams into a namespace: of pods with a GPU, and of pods without. Each is tried once, as a person tries it."""

    def __init__(self, node: NodeCluster, namespace: str, gpu_streams: int = 1) -> None:
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.gpu: list[Answer] = []
        self.other: list[Answer] = []
        self.stored: list[Tree] = []
        """The namespace's pods once the streams have ended; they are deleted after that."""
        self._server = client(node)
        self._ended = threading.Event()
        self._gpu_streams = gpu_streams
        self._threads = ThreadPoolExecutor(gpu_streams + 1)

    def __enter__(self) -> "Creates":
        pods = [(gpu_pod(f"gpu-{number}", **GATED), self.gpu) for number in range(self._gpu_streams)]
        pods.append((gpu_pod("other", gpus=0, **GATED), self.other))
        self._running = [self._threads.submit(self._stream, *each) for each in pods]
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._threads.shutdown()
        self.stored = self._server.get(self.pods).raise_for_status().json()["items"]
        self._server.delete(self.pods).raise_for_status()
        self._server.close()
        for each in self._running:
            each.result()

    def until_accepted(self, count: int) -> None:
        """Wait until so many more GPU pods have been accepted."""
        goal = len(accepted(self.gpu)) + count
        wait_until(lambda: self._goes_on() and len(accepted(self.gpu)) >= goal, SECONDS, f"{count} more GPU pods")

    def until_refused(self, words: str) -> None:
        """Wait until a GPU pod has been refused with these words."""
        wait_until(
            lambda: self._goes_on() and any(words in each.message for each in refused(self.gpu)),
            SECONDS,
            f"a refusal: {words}",
        )

    def _goes_on(self) -> bool:
        """Return whether all streams go on; an error that ended one is raised."""
        for each in self._running:
            if each.done():
                each.result()
        return True

    def _stream(self, pod: Tree, answers: list[Answer]) -> None:
        for number in range(MOST):
            if self._ended.wait(PAUSE):
                return
            name = f"{pod['metadata']['name']}-{number}"
            reply = self._server.post(self.pods, json=pod | {"metadata": pod["metadata"] | {"name": name}})
            message = reply.json()["message"] if reply.is_error else ""
            answers.append(Answer(name, time.monotonic(), reply.status_code, message))


def accepted(answers: list[Answer]) -> list[str]:
    """The names of the pods that were stored."""
    return [each.name for each in answers if not each.message]


def refused(answers: list[Answer]) -> list[Answer]:
    """The answers that were no."""
    return [each for each in answers if each.message]


def longest_gap(answers: list[Answer]) -> float:
    """The longest time between two creates that were accepted, in seconds."""
    times = [each.at for each in answers if not each.message]
    return max(after - before for before, after in pairwise(times))


def client(node: NodeCluster) -> httpx.Client:
    """The administrator's connections to the API server."""
    settings: Any = yaml.safe_load(node.kubeconfig.read_text())
    cluster, user = settings["clusters"][0]["cluster"], settings["users"][0]["user"]
    trusted = ssl.create_default_context(cafile=cluster["certificate-authority"])
    headers = {"Authorization": f"Bearer {user['token']}"}
    return httpx.Client(base_url=cluster["server"], verify=trusted, headers=headers, timeout=60)
