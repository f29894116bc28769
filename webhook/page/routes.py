"""The port of the page. By default it listens on the pod's own loopback: only `kubectl port-forward` gets there."""

from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from webhook.page.content import Sources
from webhook.page.render import rendered

_HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def page_app(sources: Sources) -> Starlette:
    """What that port serves: the page, at /."""

    async def page(_: Request) -> Response:
        return HTMLResponse(rendered(sources.content()), headers=dict(_HEADERS))

    return Starlette(routes=[Route("/", page)])
