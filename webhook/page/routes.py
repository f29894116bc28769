"""The port of the page. By default it listens on the pod's own loopback: only `kubectl port-forward` gets there.

During a port-forward any site in that person's browser could send its own name to 127.0.0.1 (DNS rebinding), and read
the page as its own. So the page answers to no other name than those of this machine.
"""

from collections.abc import Mapping, Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
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
LOCAL = ("localhost", "127.0.0.1", "[::1]")


def page_app(sources: Sources, hosts: Sequence[str] = LOCAL) -> Starlette:
    """What that port serves: the page, at /, to whoever calls it by one of these names."""

    async def page(_: Request) -> Response:
        return HTMLResponse(rendered(sources.content()), headers=dict(_HEADERS))

    trusted = Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    return Starlette(routes=[Route("/", page)], middleware=[trusted])


def hosts_at(address: str) -> Sequence[str]:
    """The names by which people call a page that listens there: beyond loopback whoever opens it chooses them."""
    return LOCAL if address in ("localhost", "127.0.0.1", "::1") else ("*",)
