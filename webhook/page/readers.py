"""Who may read the page: the API server says whose a token is (TokenReview), and what they may (SubjectAccessReview).

These are the questions that kube-rbac-proxy asks for the applications behind it.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.view import View, view

RIGHT = "/gpu-tiers/page"
"""The nonResourceURL that a reader has to be allowed to `get`. The page itself is at /."""
KEPT_SECONDS = 30.0
"""How long an answer counts: so long a right that was taken away is still good."""
MOST_KEPT = 1024
AT_ONCE = 4
"""Tokens that are asked about at a time, so that a flood of wrong ones leaves the reviews their connections."""
ACCESS = path("authorization.k8s.io/v1", "subjectaccessreviews")
TOKENS = path("authentication.k8s.io/v1", "tokenreviews")


class _User(View, frozen=True):
    username: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = {}


class _Token(View, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    audiences: Sequence[str] = ()


class _Access(View, frozen=True):
    allowed: bool = False


class TooMany(Exception):  # noqa: N818 - reads as what happened
    """More unknown tokens at once than the API server is asked about."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Whose a token is, by the API server's name for them."""

    name: str
    allowed: bool


class Readers:
    """Finds the reader of a token. `audiences`: a token has to be for one of them; without any, for the API server."""

    def __init__(self, client: Client, audiences: Sequence[str] = (), seconds: float = KEPT_SECONDS) -> None:
        self._client = client
        self.audiences = audiences
        self._kept: TTLCache[bytes, Reader | None] = TTLCache(seconds, MOST_KEPT)
        self._seats = asyncio.Semaphore(AT_ONCE)

    async def find(self, token: str) -> Reader | None:
        """None for a token that is nobody's. Raises ApiError and TooMany where that can't be told.

        Of tokens only hashes are kept.
        """
        return await self._kept.get(hashlib.sha256(token.encode()).digest(), lambda: self._ask(token))

    async def _ask(self, token: str) -> Reader | None:
        if self._seats.locked():
            raise TooMany(f"{AT_ONCE} other tokens are being asked about")
        async with self._seats:
            user = await self._user_of(token)
            return None if user is None else Reader(user.username, await self._may_read(user))

    async def _user_of(self, token: str) -> _User | None:
        """An authenticator that knows nothing of audiences names none: its yes is for another than was asked for."""
        spec = {"token": token} | ({"audiences": list(self.audiences)} if self.audiences else {})
        status = await self._answer(TOKENS, "authentication.k8s.io/v1", "TokenReview", spec)
        found = view(status, _Token)
        for_us = not self.audiences or set(found.audiences) & set(self.audiences)
        return found.user if found.authenticated and for_us else None

    async def _may_read(self, user: _User) -> bool:
        asked = {
            "user": user.username,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": msgspec.to_builtins(user.extra),
            "nonResourceAttributes": {"path": RIGHT, "verb": "get"},
        }
        return view(
            await self._answer(ACCESS, "authorization.k8s.io/v1", "SubjectAccessReview", asked), _Access
        ).allowed

    async def _answer(self, where: str, version: str, kind: str, spec: Mapping[str, object]) -> object:
        answer = await self._client.create(where, {"apiVersion": version, "kind": kind, "spec": spec})
        return answer.get("status") or {}
