"""Creates and deletes pods over the API itself, hundreds at once, as the administrator."""

import asyncio
import socket
import ssl
import weakref
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml

from tests.apiserver.installed import gpu_pod
from tests.connections import all_closed

from .plan import REFUSED_LABEL, Wish

ANSWER_SECONDS = 10
TENANT_QUOTAS = "/apis/gpu-tiers.dev/v1alpha1/tenantquotas"
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
AT_A_TIME = 50
"""Requests on their way. With more of them a small machine spends its time on requests that come too late."""
DEVICES = "devices"
"""The label `team` of the nodes with devices of DRA."""
IN, REFUSED, REFUSED_BY_ANOTHER, GONE, EVICTED = "admitted", "refused", "refused by another", "deleted", "evicted"
AGAIN, ERROR, LOST = "try again", "error", "no answer"
"""No answer. That it should try again a client library does not even tell its user, as client-go does."""

Tree = dict[str, Any]


class Api:
    """One client with many connections. `errors` counts what came instead of an answer."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._server = server["server"]
        self._headers = {"Authorization": f"Bearer {user['token']}"}
        self._context = ssl.create_default_context(cafile=server["certificate-authority"])
        self._turns = asyncio.Semaphore(AT_A_TIME)
        self._sockets = weakref.WeakSet[socket.socket]()
        self.errors: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._context, limit=AT_A_TIME, socket_factory=self._socket)
        limit = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers, timeout=limit)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
        await all_closed(self._sockets)  # the ends of TLS are still being said

    def _socket(self, address: Any) -> socket.socket:
        made = socket.socket(*address[:3])
        self._sockets.add(made)
        return made

    async def create(self, wish: Wish, owner: Tree | None = None) -> str:
        """Return the outcome of one try; "already exists" shows that the answer to an earlier one was lost."""
        status, said = await self.ask("POST", f"/api/v1/namespaces/{wish.namespace}/pods", _pod(wish, owner))
        if status == 201 or said.get("reason") == "AlreadyExists":
            return IN
        message = said.get("message", "")
        if "denied the request" in message:
            if REFUSED_LABEL in message:
                return REFUSED_BY_ANOTHER
            if "GPUs; this pod asks for" in message:
                return REFUSED
        return self._error(status, said)

    async def job(self, wish: Wish, pods: int) -> Tree:
        """The Job of so many pods that a pod is of, as the pod's owner; asked for until it is there."""
        place = f"/apis/batch/v1/namespaces/{wish.namespace}/jobs"
        while True:
            status, said = await self.ask("POST", place, _job(wish, pods))
            if said.get("reason") == "AlreadyExists":
                status, said = await self.ask("GET", f"{place}/{wish.gang}")
            if status in (200, 201):
                named = {"name": wish.gang, "uid": said["metadata"]["uid"]}
                return {"apiVersion": "batch/v1", "kind": "Job", "controller": True, **named}
            self._error(status, said)
            await asyncio.sleep(0.5)

    async def exists(self, wish: Wish) -> bool:
        """Return whether the pod of this wish is stored."""
        status, _ = await self.ask("GET", _path(wish))
        return status == 200

    async def is_placed(self, wish: Wish) -> bool:
        """Return whether the pod has a node."""
        status, said = await self.ask("GET", _path(wish))
        return status == 200 and "nodeName" in said["spec"]

    async def is_gone(self, wish: Wish) -> bool:
        """Return whether it is certain that no such pod is stored."""
        status, _ = await self.ask("GET", _path(wish))
        return status == 404

    async def delete(self, wish: Wish) -> str:
        """Return the outcome of one try."""
        status, said = await self.ask("DELETE", _path(wish))
        return GONE if status in (200, 404) else self._error(status, said)

    async def items(self, path: str) -> list[Tree]:
        """A quorum list, asked for until it comes."""
        while True:
            status, said = await self.ask("GET", path)
            if status == 200:
                return list(said["items"])
            self._error(status, said)
            await asyncio.sleep(0.5)

    async def ask(self, method: str, path: str, body: Tree | None = None) -> tuple[int, Tree]:
        """The status and the object of one answer; status 0 where none came."""
        headers = MERGE_PATCH if method == "PATCH" else None
        asked = self._session.request(method, self._server + path, json=body, headers=headers)
        try:
            async with self._turns, asked as answer:
                return answer.status, await answer.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return 0, {"message": type(error).__name__}

    def _error(self, status: int, said: Tree) -> str:
        self.errors[f"{status} {said.get('message', '')[:200]}"] += 1
        if not status:
            return LOST
        again = any(words in said.get("message", "") for words in ("try again", "context deadline exceeded"))
        return AGAIN if again else ERROR


def _path(wish: Wish) -> str:
    return f"/api/v1/namespaces/{wish.namespace}/pods/{wish.name}"


def _job(wish: Wish, pods: int) -> Tree:
    pod = gpu_pod("", wish.gpus, tier=wish.tier, restartPolicy="Never")
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": wish.gang}, "spec": spec}


def _pod(wish: Wish, owner: Tree | None) -> Tree:
    more = {"nodeSelector": {"team": DEVICES}} if wish.by_dra else {}
    pod = gpu_pod(wish.name, wish.gpus, tier=wish.tier, **more)
    if owner:
        pod["metadata"]["ownerReferences"] = [owner]
    if wish.refused_by_another:
        pod["metadata"]["labels"][REFUSED_LABEL] = "yes"
    return pod
