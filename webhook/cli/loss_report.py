"""`gpu-tiers report`: what preemptions have cost over some time, from Prometheus, for whoever pays for GPUs."""

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import typer

from webhook.cli.ask_prometheus import NoAnswer, PrometheusOption, numbers, require_since
from webhook.cli.output import Answer, Table, fail, write
from webhook.policy.checkpoint.work_lost import Work, summed
from webhook.report.shown import Shown
from webhook.server.metric_table import LOST_GPU_SECONDS, PREEMPTIONS

NO_PROMETHEUS = (
    "report reads from the Prometheus that scrapes gpu-tiers: name its address with --prometheus, or in "
    "GPU_TIERS_PROMETHEUS, such as http://localhost:9090 (kubectl -n monitoring port-forward svc/prometheus 9090). "
    "Without one, the page shows the preemptions since its replica began to lead"
)


def loss_report(
    since: Annotated[str, typer.Option(help="How far back to look, such as 7d or 4w.")] = "7d",
    prometheus: PrometheusOption = "",
    output: Annotated[
        Literal["table", "markdown", "csv", "json", "yaml"],
        typer.Option("--output", "-o", "--format", help="table, markdown, csv, json or yaml."),
    ] = "table",
) -> None:
    """Show what preemptions have cost, from Prometheus: GPU-hours lost by tenant, tier and evictor, and who saved.

    Use it to ask what evictions cost over some days. `posture` shows who can evict whom, and `usage --since` the
    GPU-hours that tenants used.

    Example: `gpu-tiers report --since 4w --prometheus http://localhost:9090`

    The last line is what a hook would have saved for pods that had none. Exits with 2 if there is no answer.
    """
    if not prometheus:
        fail(NO_PROMETHEUS)
    try:
        require_since(since)
        pods, lost = (
            numbers(prometheus, f"sum by ({', '.join(each.labels)}) ({growth(each.name, since)})", each.labels)
            for each in (PREEMPTIONS, LOST_GPU_SECONDS)
        )
    except NoAnswer as problem:
        fail(str(problem))
    found = report_of(since, pods, lost)
    cells = [*map(_cells, found.rows)]
    if output == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows([COLUMNS, *cells])
    else:
        tables = (Table(COLUMNS, [tuple(cell or "-" for cell in row) for row in cells]),) if cells else ()
        write(Answer(found, tables, tuple(_notes(found))), output)


class LossRow(Shown, frozen=True):
    """Evictions of a tenant's pods of a tier for pods of another; "" stands for none, and for one that is not known.

    Of the others, neither `saved` nor `not_saved`, nothing tells. `lost` is None where no work to lose was evicted.
    """

    tenant: str
    tier: str
    evictor: str
    pods: int
    saved: int
    not_saved: int
    lost: Work | None


class LossReport(Shown, frozen=True):
    """`unhooked` is what those lost that had no hook, or a program that knows nothing of it.

    `hook_would_save` is what of that a hook would have kept, in GPU-seconds, if its saves were as those that were
    told; None where none was told.
    """

    since: str
    rows: tuple[LossRow, ...]
    unhooked: Work | None
    hook_would_save: float | None


_Counted = Mapping[tuple[str, ...], float]


def growth(series: str, since: str) -> str:
    """Return a query of how much a counter has grown: like increase(), and with the first event of a series.

    It subtracts what there was before from what there is in the end. Only where a process began again under the same
    name it takes increase().
    """
    in_the_end = f"last_over_time({series}[{since}])"
    grown = f"{in_the_end} - ({series} offset {since} or 0 * {in_the_end})"
    return f"(({grown}) unless (resets({series}[{since}]) > 0)) or increase({series}[{since}])"


UNHOOKED = ("no-hook", "nothing-listens")
NOT_SAVED = ("not-saved", "nothing-listens")


def report_of(since: str, pods: _Counted, lost: _Counted) -> LossReport:
    """Return what the two counters say, the rows that lost most first."""
    groups: defaultdict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    for (tier, evictor, tenant, outcome), count in pods.items():
        if round(count):
            groups[tenant, tier, evictor][outcome] = round(count)
    work: defaultdict[tuple[str, str, str], list[Work]] = defaultdict(list)
    for (tier, evictor, tenant, _, exact), gpu_seconds in lost.items():
        if gpu_seconds:
            work[tenant, tier, evictor].append(Work(gpu_seconds, exact == "true"))
    rows = []
    for key in {*groups, *work}:
        outcomes, lost_work = groups[key], work[key]
        not_saved = sum(outcomes.get(each, 0) for each in NOT_SAVED)
        saved, total = outcomes.get("saved", 0), summed(lost_work) if lost_work else None
        rows.append(LossRow(*key, sum(outcomes.values()), saved, not_saved, total))
    rows.sort(key=lambda each: (-(each.lost.gpu_seconds if each.lost else 0.0), each.tenant, each.tier, each.evictor))
    unhooked = [Work(gpus, key[4] == "true") for key, gpus in lost.items() if key[3] in UNHOOKED and gpus]
    return LossReport(since, tuple(rows), summed(unhooked) if unhooked else None, _would_save(pods, lost))


def _would_save(pods: _Counted, lost: _Counted) -> float | None:
    """Return the loss without a hook, minus what as many evictions that save lose: a low estimate."""
    saved = sum(count for (*_, outcome), count in pods.items() if outcome == "saved")
    if not saved:
        return None
    each = sum(gpus for (*_, outcome, _), gpus in lost.items() if outcome == "saved") / saved
    unhooked = sum(count for (*_, outcome), count in pods.items() if outcome in UNHOOKED)
    return max(0.0, sum(gpus for (*_, outcome, _), gpus in lost.items() if outcome in UNHOOKED) - unhooked * each)


COLUMNS = ("Tenant", "Tier", "Evicted for", "Pods", "Saved", "Not saved", "Not known", "GPU-hours lost", "Exact")


def _cells(row: LossRow) -> tuple[str, ...]:
    unknown = row.pods - row.saved - row.not_saved
    lost = (f"{row.lost.gpu_seconds / 3600:.2f}", "yes" if row.lost.exact else "at most") if row.lost else ("0.00", "")
    return (row.tenant, row.tier, row.evictor, *map(str, (row.pods, row.saved, row.not_saved, unknown)), *lost)


def _notes(found: LossReport) -> Iterator[str]:
    if not found.rows:
        yield f"Prometheus knows of no preemption in {found.since}. Does it scrape gpu-tiers, and keep {found.since}?"
        return
    pods, saved = sum(each.pods for each in found.rows), sum(each.saved for each in found.rows)
    lost = [each.lost for each in found.rows if each.lost]
    total = f", and lost {summed(lost)}" if lost else ""
    yield f"In {found.since} {pods} pods were preempted: {saved} saved ({saved / max(pods, 1):.0%}){total}."
    if found.unhooked:
        kept = ""
        if found.hook_would_save is not None:
            work = Work(found.hook_would_save, found.unhooked.exact)
            kept = f" By what those lost that saved, a hook would have kept {work} of it."
        yield f"Those without a hook, or whose program knows nothing of it, lost {found.unhooked}.{kept}"
