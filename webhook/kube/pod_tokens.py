"""Tells which pod a projected token was made for, by the keys with which the API server signs tokens.

The API server publishes them: https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#service-account-issuer-discovery
So no token is shown to it, however many report. What it signed counts until it expires, a deleted pod's too.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import jwt
import msgspec
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from webhook.kube.client import Client
from webhook.objects.view import View, view

DISCOVERY, KEYS = "/.well-known/openid-configuration", "/openid/v1/jwks"
ASK_AGAIN_SECONDS = 30.0
"""How soon the keys are read again for a token that names none of them."""
SKEW_SECONDS = 30
ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512")


class PodIdentity(View, frozen=True):
    """A pod, as its token names it."""

    name: str = ""
    uid: str = ""


class _Bound(View, frozen=True):
    namespace: str = ""
    pod: PodIdentity | None = None


class _Claims(View, frozen=True):
    bound: _Bound = msgspec.field(default=_Bound(), name="kubernetes.io")


class _Discovery(View, frozen=True):
    issuer: str = ""


class _Keys(View, frozen=True):
    keys: Sequence[Mapping[str, object]] = ()


class NotAccepted(Exception):  # noqa: N818 - an answer, not a malfunction
    """A token that proves nothing; the text says why."""


class PodTokens:
    """Reads tokens for one audience."""

    def __init__(self, client: Client, audience: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._audience = audience
        self._clock = clock
        self._issuer = ""
        self._keys: Mapping[str, PyJWK] = {}
        self._asked: float | None = None
        self._asking = asyncio.Lock()

    async def pod_of(self, token: str) -> PodIdentity:
        """Raises NotAccepted, and ApiError where the keys can't be read."""
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._audience,
                issuer=self._issuer,
                leeway=SKEW_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except PyJWTError as error:
            raise NotAccepted(str(error)) from None
        pod = view(claims, _Claims).bound.pod
        if pod is None or not pod.uid:
            raise NotAccepted("the token is not bound to a pod")
        return pod

    async def _key(self, key_id: str) -> PyJWK:
        async with self._asking:
            stale = self._asked is None or self._clock() - self._asked >= ASK_AGAIN_SECONDS
            if key_id not in self._keys and stale:
                await self._read()
        if key_id not in self._keys:
            raise NotAccepted("no key of this cluster has signed the token")
        return self._keys[key_id]

    async def _read(self) -> None:
        issuer = view(await self._client.get(DISCOVERY), _Discovery).issuer
        found = view(await self._client.get(KEYS, accept="application/jwk-set+json"), _Keys).keys
        self._issuer, self._keys = issuer, {str(each.get("kid", "")): PyJWK.from_dict(dict(each)) for each in found}
        self._asked = self._clock()
