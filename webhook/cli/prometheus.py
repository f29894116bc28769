"""Answers from Prometheus: GPU-hours by tenant (`usage --since`), and the cost of preemptions (`report`)."""

import csv
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from webhook.cli.command import Answer, Table, fail, with_options, write
from webhook.cli.manifests.documents import BadInput
from webhook.objects.refusal import shown
from webhook.policy.checkpoint.work_lost import Work, summed
from webhook.report.latest import NOT_SAVED, saved_share
from webhook.report.shown import Shown
from webhook.server.metric_table import TABLE

TIMEOUT = 30.0
MOST_BYTES = 32 * 2**20
"""The most bytes that are read of an answer: some 100,000 series."""


class NoAnswer(BadInput):
    """A query without an answer, or a wrong option of it; the text says why, and what to do."""


def require_since(since: str) -> None:
    """Raise NoAnswer if `since` is not a whole number with one unit of m, h, d, w or y."""
    if not re.fullmatch(r"[1-9][0-9]{0,4}[mhdwy]", since):
        raise NoAnswer(f'--since: "{shown(since)}" is not a time; write a time such as 12h, 30d or 4w')


def numbers(prometheus: str, query: str, labels: Sequence[str]) -> dict[tuple[str, ...], float]:
    """Return the finite values of an instant query, by the values of these labels. Raises NoAnswer."""
    # 1. Ask.
    if urlsplit(prometheus).scheme not in ("http", "https"):
        problem = "is not an address; write one such as http://localhost:9090"
        raise NoAnswer(f'--prometheus: "{shown(prometheus)}" {problem}')
    address = f"{prometheus.rstrip('/')}/api/v1/query?{urlencode({'query': query})}"
    try:
        with urlopen(address, timeout=TIMEOUT) as response:  # noqa: S310 - http or https, as looked at above
            body = response.read(MOST_BYTES)
    except HTTPError as error:
        with error:
            try:
                said = str(json.loads(error.read(MOST_BYTES))["error"])
            except (ValueError, KeyError, TypeError, OSError):
                said = str(error.reason)
        raise NoAnswer(f"Prometheus at {shown(prometheus)} answers {error.code}: {' '.join(said.split())}") from error
    except (URLError, OSError, ValueError) as error:
        cause = getattr(error, "reason", error)
        reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
        raise NoAnswer(f"can't ask Prometheus at {shown(prometheus)}: {reason}; check --prometheus") from error

    # 2. Read the vector of the answer.
    try:
        found = {
            tuple(str(each["metric"].get(name, "")) for name in labels): float(each["value"][1])
            for each in json.loads(body)["data"]["result"]
        }
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
        raise NoAnswer(f"what answers at {shown(prometheus)} is no Prometheus; check --prometheus") from error
    return {key: value for key, value in found.items() if math.isfinite(value)}


class GpuHours(Shown, frozen=True):
    """The GPU-hours of a tenant's pods of a tier and flavor on nodes, and their price; "" for no flavor."""

    tenant: str
    tier: str
    flavor: str
    gpu_hours: float
    price: float | None = None


def prices(prometheus: str) -> dict[str, float]:
    """Return the price of a GPU-hour by flavor, for flavors that have a price. Raises NoAnswer."""
    found = numbers(prometheus, "max by (flavor) (gpu_tiers_gpu_hour_price)", ("flavor",))
    return {flavor: price for (flavor,), price in found.items()}


def gpu_hours_answer(prometheus: str, since: str, names: Collection[str]) -> Answer:
    """Return GPU-hours by tenant, tier and flavor, the most first within a tenant. Raises NoAnswer."""
    require_since(since)
    counter = TABLE["gpu_tiers_gpu_seconds_total"]
    query = f"sum by ({', '.join(counter.labels)}) (increase({counter.name}[{since}])) / 3600"
    answer = numbers(prometheus, query, counter.labels)
    of_hour = prices(prometheus)
    wanted = []
    for (tenant, tier, flavor), exact in answer.items():
        hours, price = round(exact, 3), round(exact * of_hour[flavor], 2) if flavor in of_hour else None
        if hours and (not names or tenant in names):
            wanted.append(GpuHours(tenant, tier, flavor, hours, price))
    wanted.sort(key=lambda each: (each.tenant, -each.gpu_hours))
    rows = []
    for each in wanted:
        price_shown = "-" if each.price is None else f"{each.price:,.2f}"
        rows.append((each.tenant or "-", each.tier or "-", each.flavor or "-", f"{each.gpu_hours:.1f}", price_shown))
    costs = sum(each.price for each in wanted if each.price is not None)
    priced = f", for {costs:,.2f} where a flavor has a price" if of_hour else ""
    total = f"{sum(each.gpu_hours for each in wanted):.1f} GPU-hours in {since}{priced}."
    nothing = f"Prometheus has no GPU-hours in {since}. Is gpu-tiers scraped, and does Prometheus keep {since}?"
    columns = ("Tenant", "Tier", "Flavor", "GPU-hours", "Price")
    shown_columns = len(columns) - (0 if of_hour else 1)
    table = Table(columns[:shown_columns], [row[:shown_columns] for row in rows])
    return Answer(wanted, (table,) if rows else (), (total if rows else nothing,))


NO_PROMETHEUS = (
    "report reads from the Prometheus that scrapes gpu-tiers: name its address with --prometheus, or in "
    "GPU_TIERS_PROMETHEUS, such as http://localhost:9090 (kubectl -n monitoring port-forward svc/prometheus 9090). "
    "Without one, the page shows the preemptions since its replica began to lead"
)


@with_options
def loss_report(
    since: str = "7d", prometheus: str = "", output: Literal["table", "markdown", "csv", "json", "yaml"] = "table"
) -> None:
    """Show what preemptions have cost, from Prometheus: GPU-hours lost by tenant, tier and evictor, and who saved.

    Use it to ask what evictions cost over some days. `posture` shows which tier evicts which, and `usage --since` the
    GPU-hours that tenants used.

    Example: `gpu-tiers report --since 4w --prometheus http://localhost:9090`

    The last line is what a hook would have saved for pods that had none. Exits with 2 if there is no answer.
    """
    if not prometheus:
        fail(NO_PROMETHEUS)
    require_since(since)
    pods, lost = (
        numbers(prometheus, f"sum by ({', '.join(each.labels)}) ({growth(each.name, since)})", each.labels)
        for each in (TABLE["gpu_tiers_preemptions_total"], TABLE["gpu_tiers_lost_gpu_seconds_total"])
    )
    of_hour = prices(prometheus)
    found = report_of(since, pods, lost, of_hour)
    cells, columns = [each.cells for each in found.rows], PRICED if of_hour else COLUMNS
    if output == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows([columns, *cells])
    else:
        tables = (Table(columns, [tuple(cell or "-" for cell in row) for row in cells]),) if cells else ()
        write(Answer(found, tables, tuple(_notes(found))), output)


class LossRow(Shown, frozen=True):
    """Evictions of a tenant's pods of a tier for pods of the tier `evictor`; "" is none or unknown.

    Whether pods saved that are neither in `saved` nor in `not_saved` is unknown. `lost` is None if no work was lost.
    `price` is the price of the lost GPU-hours on flavors with a price; None if no flavor has a price.
    """

    tenant: str
    tier: str
    evictor: str
    pods: int
    saved: int
    not_saved: int
    lost: Work | None
    price: float | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        pods, lost = (self.pods, self.saved, self.not_saved, self.pods - self.saved - self.not_saved), ("0.00", "")
        if self.lost:
            lost = f"{self.lost.gpu_seconds / 3600:.2f}", "yes" if self.lost.exact else "at most"
        priced = () if self.price is None else (f"{self.price:.2f}",)
        return (self.tenant, self.tier, self.evictor, *map(str, pods), *lost, *priced)


class LossReport(Shown, frozen=True):
    """The report. `unhooked` is the loss of pods without a hook, or with a program that ignores it.

    `hook_would_save` is the part that a hook would have saved, in GPU-seconds, if each of these pods had lost as much
    as a pod that saved loses on average; None if no pod saved.
    """

    since: str
    rows: tuple[LossRow, ...]
    unhooked: Work | None
    hook_would_save: float | None


_Counted = Mapping[tuple[str, ...], float]


def growth(series: str, since: str) -> str:
    """Return a query for the growth of a counter, with the first event of a series, which increase() misses.

    The query subtracts the value at the start from the one at the end. A counter that was reset in between, because a
    process restarted under the same name, gets increase().
    """
    in_the_end = f"last_over_time({series}[{since}])"
    grown = f"{in_the_end} - ({series} offset {since} or 0 * {in_the_end})"
    return f"(({grown}) unless (resets({series}[{since}]) > 0)) or increase({series}[{since}])"


UNHOOKED = ("no-hook", "nothing-listens")


def report_of(since: str, pods: _Counted, lost: _Counted, of_hour: Mapping[str, float]) -> LossReport:
    """Return the report, the rows with the largest loss first.

    `pods` and `lost` are the growth of the two counters by label values, and `of_hour` the price of a GPU-hour by
    flavor.
    """
    groups: defaultdict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    for (tier, evictor, tenant, outcome), count in pods.items():
        if round(count):
            groups[tenant, tier, evictor][outcome] = round(count)
    work: defaultdict[tuple[str, str, str], list[Work]] = defaultdict(list)
    costs: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    for (tier, evictor, tenant, _, exact, flavor), gpu_seconds in lost.items():
        if gpu_seconds:
            work[tenant, tier, evictor].append(Work(gpu_seconds, exact == "true"))
            costs[tenant, tier, evictor] += gpu_seconds / 3600 * of_hour.get(flavor, 0.0)
    rows = []
    for key in {*groups, *work}:
        outcomes, lost_work = groups[key], work[key]
        not_saved = sum(outcomes.get(each, 0) for each in NOT_SAVED)
        saved, total = outcomes.get("saved", 0), summed(lost_work) if lost_work else None
        price = round(costs[key], 2) if of_hour else None
        rows.append(LossRow(*key, sum(outcomes.values()), saved, not_saved, total, price))
    rows.sort(key=lambda each: (-(each.lost.gpu_seconds if each.lost else 0.0), each.tenant, each.tier, each.evictor))
    unhooked = [Work(gpus, key[4] == "true") for key, gpus in lost.items() if key[3] in UNHOOKED and gpus]
    # A hook's savings are the loss without one, minus the loss of as many evictions with a save: a low estimate.
    all_saved, would_save = sum(count for (*_, outcome), count in pods.items() if outcome == "saved"), None
    if all_saved:
        lost_by_each = sum(gpus for (*_, outcome, _, _), gpus in lost.items() if outcome == "saved") / all_saved
        bare = sum(count for (*_, outcome), count in pods.items() if outcome in UNHOOKED)
        would_save = max(0.0, sum(each.gpu_seconds for each in unhooked) - bare * lost_by_each)
    return LossReport(since, tuple(rows), summed(unhooked) if unhooked else None, would_save)


COLUMNS = ("Tenant", "Tier", "Evicted for", "Pods", "Saved", "Not saved", "Not known", "GPU-hours lost", "Exact")
PRICED = (*COLUMNS, "Price of them")


def _notes(found: LossReport) -> Iterator[str]:
    if not found.rows:
        yield f"Prometheus knows of no preemption in {found.since}. Does it scrape gpu-tiers, and keep {found.since}?"
        return
    pods, *known = map(sum, zip(*((row.pods, row.saved, row.not_saved) for row in found.rows), strict=True))
    lost = [each.lost for each in found.rows if each.lost]
    total = f", and lost {summed(lost)}" if lost else ""
    yield f"In {found.since} {pods} pods were preempted: {saved_share(pods, *known)}{total}."
    if found.unhooked:
        of_hooks = ""
        if found.hook_would_save is not None:
            work = Work(found.hook_would_save, found.unhooked.exact)
            of_hooks = f" Compared with pods that saved, a hook would have saved {work} of it."
        yield f"Pods without a hook, or with a program that ignores it, lost {found.unhooked}.{of_hooks}"
