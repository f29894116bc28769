"""Admits readers of the page that the API server authenticates and allows; the answer to others says what to do.

The API server answers who a token belongs to (TokenReview) and what that user may read (SubjectAccessReview), as for
the applications behind kube-rbac-proxy.
"""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from http import HTTPStatus

import msgspec
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from webhook.kube.client import Client
from webhook.kube.discovery import ask, is_allowed
from webhook.kube.errors import ApiError
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.user import User
from webhook.objects.view import View

log = logging.getLogger(__name__)

RIGHT = "/gpu-tiers/page"
"""The nonResourceURL that a reader has to be allowed to `get`. The page itself is at /."""
CACHE_SECONDS = 30.0
"""Seconds for which an answer is cached. A right that was removed still counts for so long."""
MOST_CACHED = 1024
AT_ONCE = 4
"""Tokens that are checked at a time, so that a flood of wrong ones leaves connections for the reviews."""

WHO_ARE_YOU = (
    "This page needs a token of this cluster, in the header `Authorization: Bearer TOKEN`. "
    "For a ServiceAccount, `kubectl create token NAME{audience}` makes one."
)
NOBODY = (
    "The API server does not accept this token: it is wrong, has expired, or is for another audience. "
    "For a ServiceAccount, `kubectl create token NAME{audience}` makes one."
)
FORBIDDEN = (
    'User "{user}" may not read this page. Ask an administrator to bind a ClusterRole to that user which may get the '
    f"nonResourceURL {RIGHT}; the chart made one, whose name ends with -page-reader."
)
UNKNOWN = "The API server could not be asked who you are, so the page stays closed. Try again in a moment."
BUSY = "Too many tokens are being looked at. Try again in a moment."


class _Token(View, frozen=True):
    authenticated: bool = False
    user: User = User()
    audiences: Sequence[str] | None = None


class TooMany(Exception):  # noqa: N818 - reads as what happened
    """Raised for another unknown token while AT_ONCE tokens are being checked."""


class Reader(msgspec.Struct, frozen=True):
    """The user of a token: the name that the API server knows, and whether that user may read the page."""

    name: str
    allowed: bool


class Readers:
    """Finds the reader of a token. `audiences`: a token has to be for one of them; without any, for the API server."""

    def __init__(self, client: Client, audiences: Sequence[str] = (), seconds: float = CACHE_SECONDS) -> None:
        self._client = client
        self.audiences = audiences
        self._cache: TTLCache[bytes, Reader | None] = TTLCache(seconds, MOST_CACHED)
        self._seats = asyncio.Semaphore(AT_ONCE)

    async def find(self, token: str) -> Reader | None:
        """Return the reader; None for an unknown token. Raises ApiError and TooMany if it can't be checked.

        Only hashes of tokens are stored.
        """
        return await self._cache.get(hashlib.sha256(token.encode()).digest(), lambda: self._ask(token))

    async def _ask(self, token: str) -> Reader | None:
        if self._seats.locked():
            raise TooMany(f"{AT_ONCE} other tokens are being asked about")
        async with self._seats:
            # 1. Whose token is it? An authenticator that ignores audiences returns none: its yes is for another one.
            spec = {"token": token} | ({"audiences": list(self.audiences)} if self.audiences else {})
            found = await ask(self._client, "authentication.k8s.io/v1", "TokenReview", spec, _Token)
            if not found.authenticated or (self.audiences and not set(found.audiences or ()) & set(self.audiences)):
                return None

            # 2. May that user read the page?
            page = {"nonResourceAttributes": {"path": RIGHT, "verb": "get"}}
            return Reader(found.user.username, await is_allowed(self._client, found.user, page))


class Guard:
    """An app in front of another one (ASGI): a request passes if `readers` know and allow its token's user."""

    def __init__(self, app: ASGIApp, readers: Readers) -> None:
        self._app = app
        self._readers = readers
        self._audience = "".join(f" --audience={each}" for each in readers.audiences[:1])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the app, or answer it with 401, 403 or 503 and what to do."""
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            refusal = await self._refusal(token.strip())
        else:
            refusal = self._unauthorized(WHO_ARE_YOU)
        await (refusal or self._app)(scope, receive, send)

    async def _refusal(self, token: str) -> PlainTextResponse | None:
        try:
            reader = await self._readers.find(token)
        except TooMany:
            return _said(HTTPStatus.SERVICE_UNAVAILABLE, BUSY)
        except ApiError as error:
            log.warning("reader of the page not asked about", {"error": str(error)})
            return _said(HTTPStatus.SERVICE_UNAVAILABLE, UNKNOWN)
        if reader is None:
            return self._unauthorized(NOBODY)
        return None if reader.allowed else _said(HTTPStatus.FORBIDDEN, FORBIDDEN.format(user=reader.name))

    def _unauthorized(self, sentence: str) -> PlainTextResponse:
        answer = _said(HTTPStatus.UNAUTHORIZED, sentence.format(audience=self._audience))
        answer.headers["www-authenticate"] = 'Bearer realm="gpu-tiers"'
        return answer


def _said(status: HTTPStatus, sentence: str) -> PlainTextResponse:
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return PlainTextResponse(f"{sentence}\n", status, headers)
