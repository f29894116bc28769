"""An audit as people read it: counts for a manager, then what is wrong, and each workload where that is asked for."""

from collections.abc import Iterator
from decimal import Decimal

from webhook.cli.findings_shown import finding_notes, finding_tables
from webhook.cli.output import Answer, Table
from webhook.readmodel.audit.audit_report import AuditCounts, AuditedShown, AuditReport, Share
from webhook.readmodel.audit.contradictions import number_of_gpus
from webhook.readmodel.lint.snapshot import number_of

_COLUMNS = ("Tenant", "Tier", "All", "Agrees", "Would be changed", "Would be refused", "Before gpu-tiers")


def audit_answer(report: AuditReport, *, each_workload: bool) -> Answer:
    """What people read of it."""
    return Answer(report, tuple(_tables(report, each_workload=each_workload)), tuple(_notes(report)))


def _tables(report: AuditReport, *, each_workload: bool) -> Iterator[Table]:
    total = report.total.all
    gpus = number_of_gpus(Decimal(str(total.gpus)))
    title = f"{number_of(total.workloads, 'workload')} with {gpus} (GPUs in brackets)"
    if report.tenants:
        yield Table(_COLUMNS, [*map(_cells, (*report.tenants, report.total))], title)
    yield from finding_tables(report.findings)
    if each_workload and report.workloads:
        yield Table(
            ("Workload", "Namespace", "Tier", "Type", "Grade", "Hook", "Verdict", "Stands", "GPUs", "Findings"),
            [*map(_workload, report.workloads)],
            "Workloads",
        )


def _cells(row: AuditCounts) -> tuple[str, ...]:
    return (row.tenant, row.tier, *map(_share, (row.all, row.agrees, row.changed, row.refused, row.before)))


def _share(share: Share) -> str:
    return f"{share.workloads} ({share.gpus})" if share.workloads else "-"


def _workload(found: AuditedShown) -> tuple[str, ...]:
    return (
        f"{found.kind}/{found.name}",
        found.namespace,
        found.tier,
        found.workload_type,
        found.grade or "-",
        found.hook,
        found.verdict,
        found.standing,
        str(found.gpus),
        ", ".join(found.findings) or "-",
    )


def _notes(report: AuditReport) -> Iterator[str]:
    yield from finding_notes(report.findings)
    if not report.workloads:
        yield "There is no workload with GPUs."
    elif not report.findings:
        yield "Nothing contradicts the policy."
    yield from report.notes
