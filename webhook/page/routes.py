"""The page at its two doors: the pod's own loopback, where only `kubectl port-forward` gets, and one with a guard.

During a port-forward any site in that person's browser could send its own name to 127.0.0.1 (DNS rebinding), and read
the page as its own. So at loopback the page answers to no other name than those of this machine. At the other door a
browser sends no token by itself. What it shows is gathered at each request, from what this process knows anyway.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from webhook.objects.refusal import first_of
from webhook.page.choice import EVERYTHING, MOST_TENANTS, SECONDS, Choice
from webhook.page.posture_picture import posture_picture
from webhook.page.readers import Guard, Readers
from webhook.page.use_chart import evicted_of, use_chart
from webhook.report.at_risk_now import RisksOf, TierAtRisk, at_risk_by_tier
from webhook.report.gpus_now import GpusNow, Waits
from webhook.report.latest import Evictions, Preemption, VerdictGroup
from webhook.report.posture import Posture
from webhook.report.tenants import TenantShown
from webhook.report.use_over_time import DayOfUse, UseAt

SHOWN = 100
"""Verdicts, and preemptions, the latest first: to render a page takes the time of reviews."""
MOST_WAITING = 30
MOST_NAMED = 3


class ChartShown(msgspec.Struct, frozen=True):
    """`drawn` is "" while there is nothing to draw, `prometheus` where none is named.

    Of `problem` it says why that one gave nothing, so that what is drawn is what this replica has counted.
    """

    drawn: str = ""
    prometheus: str = ""
    problem: str = ""


class PageContent(msgspec.Struct, frozen=True):
    """`health` has what is wrong with each thing that is checked, "" where nothing is.

    `leader` is the replica that leads, "" where none does, and `forward` the command that opens its page. `gpus` is
    None while this replica does not lead, or has not read all pods yet.
    """

    replica: str
    leads: bool
    leader: str
    forward: str
    health: Mapping[str, str]
    gpus: GpusNow | None
    posture: Posture
    tenants: Sequence[TenantShown]
    verdicts: Sequence[VerdictGroup]
    preemptions: Sequence[Preemption]
    chart: ChartShown = ChartShown()
    choice: Choice = EVERYTHING
    at_risk: RisksOf = msgspec.field(default_factory=dict)

    @property
    def tenants_chosen(self) -> Sequence[TenantShown]:
        """Those that stand in the table."""
        return self.choice.of_tenants(self.tenants)

    @property
    def waits_chosen(self) -> Sequence[Waits]:
        """All that wait, as far as they were chosen."""
        return self.choice.of_waits(self.gpus.waits) if self.gpus else ()

    @property
    def evictions(self) -> Evictions:
        """Of those that are shown."""
        return Evictions.of(self.preemptions)

    @property
    def risks_chosen(self) -> Sequence[TierAtRisk]:
        """The work at risk by tier, of the tenant and the tier that were chosen."""
        return at_risk_by_tier(self.choice.of_risks(self.at_risk), [each.name for each in self.posture.tiers])

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not well, each a sentence; nothing where all is."""
        tenants = [each.name for each in self.tenants if each.problems]
        of_tenants = (f"tenants: see {first_of(tenants, MOST_NAMED)} below",) if tenants else ()
        return (*(f"{name}: {trouble}" for name, trouble in self.health.items() if trouble), *of_tenants)


class Sources(msgspec.Struct, frozen=True):
    """The source of each part, asked at each request. `day` asks the Prometheus of that name, where one is named."""

    replica: str
    leads: Callable[[], bool]
    leader: Callable[[], str]
    forward: Callable[[str], str]
    health: Callable[[], Mapping[str, str]]
    gpus: Callable[[], Awaitable[GpusNow | None]]
    posture: Callable[[], Awaitable[Posture]]
    tenants: Callable[[], Sequence[TenantShown]]
    verdicts: Iterable[VerdictGroup]
    preemptions: Iterable[Preemption]
    use: Iterable[UseAt] = ()
    prometheus: str = ""
    day: Callable[[], Awaitable[DayOfUse]] | None = None
    at_risk: Callable[[], RisksOf] = dict

    async def content(self, choice: Choice = EVERYTHING) -> PageContent:
        """All of it, as it is now."""
        leader, day_of = self.leader(), self.day or _no_day
        gpus, day, posture = await asyncio.gather(self.gpus(), day_of(), self.posture())
        return PageContent(
            self.replica,
            self.leads(),
            leader,
            self.forward(leader) if leader else "",
            self.health(),
            gpus,
            posture,
            self.tenants(),
            tuple(islice(choice.of_verdicts(self.verdicts), SHOWN)),
            tuple(islice(choice.of_preemptions(self.preemptions), SHOWN)),
            self._chart(day, [each.name for each in posture.tiers]),
            choice,
            self.at_risk(),
        )

    def _chart(self, day: DayOfUse | None, tiers: Sequence[str]) -> ChartShown:
        """Of what the Prometheus tells, else of what this replica has counted."""
        if day and (told := use_chart(day.seen, tiers, day.evicted)):
            return ChartShown(told, self.prometheus)
        counted = use_chart(tuple(self.use), tiers, evicted_of(self.preemptions))
        problem = day.problem or "so far it has seen less than ten minutes" if day else ""
        return ChartShown(counted, self.prometheus, problem)


async def _no_day() -> None:
    """Nobody is asked."""


_PAGE = Environment(
    loader=PackageLoader("webhook.page"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
).get_template("page.html")
"""jinja2 escapes whatever stands in an object, and nothing is fetched from elsewhere."""


def rendered(content: PageContent) -> str:
    """The whole page."""
    picture, chart = Markup(posture_picture(content.posture)), Markup(content.chart.drawn)  # noqa: S704 - they escape names
    now = _clock(datetime.now(UTC).timestamp())
    bounds = {"most_waiting": MOST_WAITING, "most_tenants": MOST_TENANTS, "seconds": SECONDS}
    return _PAGE.render(c=content, picture=picture, chart=chart, clock=_clock, now=now, **bounds)


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


_HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
LOCAL = ("localhost", "127.0.0.1", "[::1]")


def page_app(sources: Sources, readers: Readers | None = None) -> Starlette:
    """What a port serves: the page, at /, to those readers; without any, to whoever calls it by a name of loopback."""

    async def page(request: Request) -> Response:
        content = await sources.content(Choice.of(request.query_params))
        return HTMLResponse(rendered(content), headers=dict(_HEADERS))

    local = Middleware(TrustedHostMiddleware, allowed_hosts=list(LOCAL), www_redirect=False)
    guarded = Middleware(Guard, readers=readers) if readers else local
    return Starlette(routes=[Route("/", page)], middleware=[guarded])
