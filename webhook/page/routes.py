"""The page at its two ports: the pod's own loopback, which only `kubectl port-forward` reaches, and one with a guard.

During a port-forward any site in that person's browser could send its own name to 127.0.0.1 (DNS rebinding), and read
the page as its own. So at loopback the page answers only to this machine's names. At the other port a browser sends no
token by itself. The content is gathered at each request, from what this process knows anyway.

1. `Choice` is the reader's choice. 2. `PageContent` is the template's input. 3. `use_chart` draws the last day: a line
   for each tier, and below it how many pods each lost to preemptions.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice, pairwise
from typing import Self

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
from webhook.page.posture_picture import posture_picture
from webhook.page.readers import Guard, Readers
from webhook.report.gpus_now import DayOfUse, Evicted, GpusNow, RisksOf, TierAtRisk, UseAt, Waits, at_risk_by_tier
from webhook.report.latest import Evictions, Preemption, VerdictGroup
from webhook.report.posture import Posture
from webhook.report.tenants import TenantShown

LONGEST_NAME = 253
"""Characters of a name in Kubernetes."""
SECONDS = ("10", "30", "60", "300")
"""The seconds after which the page may reload itself, for a screen on the wall. By default it doesn't reload, because
readers may be slow."""
MOST_TENANTS = 30


class Choice(msgspec.Struct, frozen=True):
    """The reader's choice; "" and False choose nothing. `reload`: seconds, one of SECONDS."""

    tenant: str = ""
    tier: str = ""
    refused: bool = False
    reload: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """Read a URL's query; unknown values are ignored."""
        tenant, tier = (query.get(name, "")[:LONGEST_NAME] for name in ("tenant", "tier"))
        reload = query.get("reload", "")
        return cls(tenant, tier, bool(query.get("refused")), reload if reload in SECONDS else "")

    def has(self, tenant: str, tier: str) -> bool:
        return self.tenant in ("", tenant) and self.tier in ("", tier)


SHOWN = 100
"""The most groups of verdicts, and preemptions, on the page, because rendering takes time from reviews."""
MOST_WAITING = 30
MOST_NAMED = 3


class PageContent(msgspec.Struct, frozen=True):
    """The content of the page. `health` has the problem of each check, "" for none.

    `leader` is the replica that leads, "" for none, and `forward` the command that opens its page. `gpus` is None while
    this replica does not lead, or has not read all pods yet. `verdicts`, `preemptions` and `use` are all that this
    replica has counted, the latest verdict or preemption first. `day` is the answer of the Prometheus with that name.
    """

    replica: str
    leads: bool
    leader: str
    forward: str
    health: Mapping[str, str]
    gpus: GpusNow | None
    posture: Posture
    tenants: Sequence[TenantShown]
    verdicts: Iterable[VerdictGroup]
    preemptions: Iterable[Preemption]
    use: Iterable[UseAt] = ()
    prometheus: str = ""
    day: DayOfUse | None = None
    choice: Choice = Choice()
    at_risk: RisksOf = msgspec.field(default_factory=dict)

    @property
    def tenants_chosen(self) -> Sequence[TenantShown]:
        """Return the chosen tenant, or all; of too many, MOST_TENANTS: first those with problems, then the fullest."""
        found = self.tenants
        if self.choice.tenant:
            return [each for each in found if each.name == self.choice.tenant]
        if len(found) <= MOST_TENANTS:
            return found
        fullest = {each.name: max((sum(row.shares) for row in each.rows), default=0.0) for each in found}
        worst = sorted(found, key=lambda each: (not each.problems, -fullest[each.name], each.name))
        return worst[:MOST_TENANTS]

    @property
    def waits_chosen(self) -> Sequence[Waits]:
        """Return the chosen waiting pods."""
        return [each for each in self.gpus.waits if self.choice.has(each.tenant, each.tier)] if self.gpus else ()

    @property
    def verdicts_chosen(self) -> Sequence[VerdictGroup]:
        """Return the latest chosen verdicts; on request only those with a refusal, also a softened one."""
        choice = self.choice
        chosen = (each for each in self.verdicts if choice.has(each.last.tenant, each.last.tier))
        return list(islice((each for each in chosen if each.last.reason or not choice.refused), SHOWN))

    @property
    def preemptions_chosen(self) -> Sequence[Preemption]:
        """Return the latest preemptions with a chosen pod as victim or preemptor."""
        pods = ((each, filter(None, (each.victim, each.preemptor))) for each in self.preemptions)
        chosen = (each for each, its in pods if any(self.choice.has(pod.tenant, pod.tier) for pod in its))
        return list(islice(chosen, SHOWN))

    @property
    def evictions(self) -> Evictions:
        """Return the numbers of the shown preemptions."""
        return Evictions.of(self.preemptions_chosen)

    @property
    def risks_chosen(self) -> Sequence[TierAtRisk]:
        """Return the work at risk by tier, of the chosen tenant and tier."""
        chosen = {key: gpu_seconds for key, gpu_seconds in self.at_risk.items() if self.choice.has(*key[:2])}
        return at_risk_by_tier(chosen, [each.name for each in self.posture.tiers])

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the problems of health checks, nodes and tenants, a sentence each."""
        tenants = [each.name for each in self.tenants if each.problems]
        of_tenants = (f"tenants: see {first_of(tenants, MOST_NAMED)} below",) if tenants else ()
        lost = self.gpus.lost if self.gpus else ()
        of_nodes = (f"nodes with GPU pods that are not Ready: {first_of(lost, MOST_NAMED)}",) if lost else ()
        return (*(f"{name}: {trouble}" for name, trouble in self.health.items() if trouble), *of_nodes, *of_tenants)

    def chart(self) -> tuple[str, str]:
        """Return the chart, "" while there is nothing to draw, and why it is not from Prometheus, if one is set.

        The chart shows the last day by Prometheus, or else what this replica has counted.
        """
        tiers = [each.name for each in self.posture.tiers]
        drawn = use_chart(self.day.seen, tiers, self.day.evicted) if self.day else ""
        if drawn:
            return drawn, ""
        problem = self.day.problem or "so far it has seen less than ten minutes" if self.day else ""
        return use_chart(tuple(self.use), tiers, evicted_of(self.preemptions)), problem


_PAGE = Environment(
    loader=PackageLoader("webhook.page"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
).get_template("page.html")
"""The templates. jinja2 escapes all values, and nothing is fetched from elsewhere."""


def rendered(content: PageContent) -> str:
    """Return the whole page."""
    drawn, problem = content.chart()
    picture, chart = Markup(posture_picture(content.posture)), Markup(drawn)  # noqa: S704 - they escape names
    now = _clock(datetime.now(UTC).timestamp())
    bounds = {"most_waiting": MOST_WAITING, "most_tenants": MOST_TENANTS, "seconds": SECONDS}
    return _PAGE.render(c=content, picture=picture, chart=chart, problem=problem, clock=_clock, now=now, **bounds)


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


Content = Callable[[Choice], Awaitable[PageContent]]
"""Returns the content as it is now, for a reader's choice."""


def page_app(content: Content, readers: Readers | None = None) -> Starlette:
    """Return the app of a port: the page at /, for these readers, or for callers with a loopback name."""

    async def page(request: Request) -> Response:
        chosen = await content(Choice.of(request.query_params))
        return HTMLResponse(rendered(chosen), headers=dict(_HEADERS))

    local = Middleware(TrustedHostMiddleware, allowed_hosts=list(LOCAL), www_redirect=False)
    guarded = Middleware(Guard, readers=readers) if readers else local
    return Starlette(routes=[Route("/", page)], middleware=[guarded])


WIDTH, HEIGHT, BOTTOM = 720, 120, 30
"""The width of the chart, and the heights of its lines and of the preemptions below. A window stretches the width."""
TOP = 4
POINTS = 144
SHORTEST = 600.0
"""Seconds that have to be observed before there is a chart."""
GAP = 1.5
"""No line is drawn over a longer gap between two samples, as a multiple of the shortest gap."""


def use_chart(seen: Sequence[UseAt], tiers: Sequence[str], evicted: Iterable[Evicted]) -> str:
    """Return an SVG and its texts, within a page whose styles have its colours; "" if too little was observed."""
    if not seen or seen[-1].time - seen[0].time < SHORTEST:
        return ""
    most = max((each.gpus.get(tier, 0.0) for each in seen for tier in tiers), default=0.0) or 1.0
    bars, at_once = _bars([each for each in evicted if each.time >= seen[0].time], tiers, seen)
    below = f"preempted pods, at most {at_once}" if at_once else "no preempted pods"
    since, until = (
        datetime.fromtimestamp(each.time, UTC).strftime("%Y-%m-%d %H:%M UTC") for each in (seen[0], seen[-1])
    )
    size = f'viewBox="0 0 {WIDTH} {HEIGHT + BOTTOM}" preserveAspectRatio="none"'
    return (
        f'<div class="chart"><p><span>{most:g} GPUs</span><span>since {since}</span></p>'
        f'<svg {size} role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>GPUs used by tier, at most {most:g}; below, {below}</title>"
        f'<path class="axis" d="M0 {TOP}H{WIDTH}M0 {HEIGHT}H{WIDTH}"/>'
        f"{''.join((*_lines(seen, tiers, most), *bars))}</svg>"
        f"<p><span>{below}</span><span>until {until[11:]}</span></p></div>"
    )


def _lines(seen: Sequence[UseAt], tiers: Sequence[str], most: float) -> Iterator[str]:
    # Consecutive samples: no line is drawn through an unknown time.
    looks = seen[:: -(-len(seen) // POINTS)]
    distances = [after.time - before.time for before, after in pairwise(looks)]
    gaps = [index for index, each in enumerate(distances, start=1) if each > GAP * min(distances)]
    stretches = [looks[begin:end] for begin, end in pairwise((0, *gaps, len(looks)))]
    for index, tier in enumerate(tiers):
        for stretch in stretches:
            points = (
                f"{_x(each.time, seen)},{HEIGHT - each.gpus.get(tier, 0.0) / most * (HEIGHT - TOP):.1f}"
                for each in stretch
            )
            yield f'<polyline class="line tier-{index % 6}" points="{" ".join(points)}"/>'


def _bars(evicted: Iterable[Evicted], tiers: Sequence[str], seen: Sequence[UseAt]) -> tuple[Sequence[str], str]:
    """Draw the preemptions of one time above each other, each in its tier's colour. Return also the highest number."""
    counted: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for each in evicted:
        counted[round(_x(each.time, seen) / WIDTH * POINTS)][each.tier] += each.pods
    most = float(max((sum(pods.values()) for pods in counted.values()), default=0))
    bars = []
    for place, pods in sorted(counted.items()):
        bottom, x = float(HEIGHT + BOTTOM), round(place / POINTS * WIDTH)
        for tier, many in pods.items():
            height = round(many / most * (BOTTOM - 6), 1)
            bottom = round(bottom - height, 1)
            colour = f" t{tiers.index(tier) % 6}" if tier in tiers else ""
            bars.append(
                f'<rect class="preempted{colour}" x="{x}" y="{bottom}" width="{WIDTH // POINTS}" height="{height}"/>'
            )
    about = "" if most.is_integer() else "about "  # Prometheus interpolates between its samples
    return bars, f"{about}{most:.0f}" if most else ""


def _x(time: float, seen: Sequence[UseAt]) -> float:
    first, last = seen[0].time, seen[-1].time
    return round(min((time - first) / (last - first), 1.0) * (WIDTH - 4), 1)


def evicted_of(preemptions: Iterable[Preemption]) -> Iterator[Evicted]:
    """Yield the preemptions whose time can be read."""
    for each in preemptions:
        try:
            yield Evicted(datetime.fromisoformat(each.time).timestamp(), each.victim.tier)
        except ValueError:
            continue
