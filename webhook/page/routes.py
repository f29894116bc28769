"""The page at its two doors: the pod's own loopback, where only `kubectl port-forward` gets, and one with a guard.

During a port-forward any site in that person's browser could send its own name to 127.0.0.1 (DNS rebinding), and read
the page as its own. So at loopback the page answers to no other name than those of this machine. At the other door a
browser sends no token by itself.
"""

from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from webhook.page.content import Sources
from webhook.page.guard import Guard
from webhook.page.readers import Readers
from webhook.page.render import rendered

_HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
LOCAL = ("localhost", "127.0.0.1", "[::1]")


def page_app(sources: Sources, readers: Readers | None = None) -> Starlette:
    """What a port serves: the page, at /, to those readers; without any, to whoever calls it by a name of loopback."""

    async def page(_: Request) -> Response:
        return HTMLResponse(rendered(sources.content()), headers=dict(_HEADERS))

    local = Middleware(TrustedHostMiddleware, allowed_hosts=list(LOCAL), www_redirect=False)
    guarded = Middleware(Guard, readers=readers) if readers else local
    return Starlette(routes=[Route("/", page)], middleware=[guarded])
