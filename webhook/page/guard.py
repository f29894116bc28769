"""Lets those to the page whom the API server knows and allows, and tells the others in a sentence what to do."""

from http import HTTPStatus

import structlog
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from webhook.kube.errors import ApiError
from webhook.page.readers import RIGHT, Readers, TooMany

log = structlog.get_logger(__name__)

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
UNKNOWN = "Who you are could not be asked of the API server, so the page stays closed. Try again in a moment."
BUSY = "Too many tokens are being looked at. Try again in a moment."


class Guard:
    """An app behind which another one is (ASGI): a request gets there if `readers` know and allow its token's user."""

    def __init__(self, app: ASGIApp, readers: Readers) -> None:
        self._app = app
        self._readers = readers
        self._audience = "".join(f" --audience={each}" for each in readers.audiences[:1])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
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
            log.warning("reader of the page not asked about", error=str(error))
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
