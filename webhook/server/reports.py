"""Hears how far trainings are. A port of its own, so that no pod needs the way to the reviews.

Why a pod reports to every replica: each may lead next, and nothing has to be handed over then.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from webhook.controllers.last_saves import LastSaves, NoRoom, NotYet, Progress, TooSoon
from webhook.kube.errors import ApiError
from webhook.kube.pod_tokens import NotAccepted, PodTokens
from webhook.objects.refusal import Refused

log = structlog.get_logger(__name__)

PATH = "/v1/progress"
MOST_BYTES = 4096
BODY_SECONDS = 2.0

HEAR = "a report is the JSON object that the listener writes into the file `progress`: {why}"


def reports_app(tokens: PodTokens, saves: LastSaves, heard: Callable[[str], None]) -> Starlette:
    """The app of that port; `heard` is told how each report was taken, in a word."""

    async def progress(request: Request) -> Response:
        word, answer = await _answer(request, tokens, saves)
        heard(word)
        return answer

    return Starlette(routes=[Route(PATH, progress, methods=["POST"])])


async def _answer(request: Request, tokens: PodTokens, saves: LastSaves) -> tuple[str, Response]:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return "unknown", _said(HTTPStatus.UNAUTHORIZED, "a report needs the token that its pod has for it")
    try:
        pod = await tokens.pod_of(token.strip())
        saves.report(pod.uid, msgspec.json.decode(await _body(request), type=Progress))
    except NotAccepted as error:
        return "unknown", _said(HTTPStatus.UNAUTHORIZED, f"the token is not accepted: {error}")
    except (ApiError, Refused) as error:
        log.warning("report not heard: the keys of tokens can't be read", error=str(error))
        return "failed", _said(HTTPStatus.SERVICE_UNAVAILABLE, "the keys of tokens can't be read now")
    except (msgspec.DecodeError, TimeoutError) as error:
        return "bad", _said(HTTPStatus.BAD_REQUEST, HEAR.format(why=error or "it came too slowly"))
    except NotYet:
        return "bad", _said(HTTPStatus.BAD_REQUEST, "last_saved_at has not come yet: the node's clock is ahead")
    except TooSoon:
        return "too-soon", _said(HTTPStatus.TOO_MANY_REQUESTS, "this pod has just reported")
    except NoRoom:
        return "no-room", _said(HTTPStatus.SERVICE_UNAVAILABLE, "too many pods report")
    return "heard", Response(status_code=HTTPStatus.NO_CONTENT)


async def _body(request: Request) -> bytes:
    """Raises TimeoutError, and DecodeError for one that is too long."""
    body = b""
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                raise msgspec.DecodeError(f"it has more than {MOST_BYTES} bytes")
    return body


def _said(status: HTTPStatus, sentence: str) -> PlainTextResponse:
    return PlainTextResponse(f"{sentence}\n", status)
