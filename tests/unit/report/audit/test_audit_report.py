"""The counts that a manager reads, and what programs may rely on."""

import msgspec

from webhook.cli.audit import AuditCounts, Share, audit_answer
from webhook.report.lint.rule import Severity, fails
from webhook.report.lint.workload_rules import JUDGED_BY_ITSELF, quota_note

from .stories import pods, report, tenant, unseen, workload


def row(counts: AuditCounts) -> str:
    shares = (counts.all, counts.agrees, counts.changed, counts.refused, counts.before)
    return f"{counts.tenant} {counts.tier}: {', '.join(f'{each.workloads}/{each.gpus}' for each in shares)}"


def test_workloads_and_gpus_by_tenant_and_tier_the_highest_first() -> None:
    alpha = tenant()
    found = report(
        workload(pods(4, "gpu-batch"), tier="gpu-batch", tenant=alpha),
        workload(pods(2), tenant=alpha),
        workload(unseen(8), tenant=alpha),
        workload(pods(1), verdict="Denied", refusal="no"),
        workload(unseen(3), tier="gpu-batch", classes={}, verdict="LeftAlone"),
    )
    assert [row(each) for each in (*found.tenants, found.total)] == [
        "alpha gpu-training: 2/10, 1/2, 0/0, 0/0, 1/8",
        "alpha gpu-batch: 1/4, 1/4, 0/0, 0/0, 0/0",
        "none gpu-training: 1/1, 0/0, 0/0, 1/1, 0/0",
        "none gpu-batch: 1/3, 0/0, 0/0, 0/0, 1/3",
        "all -: 5/18, 2/6, 0/0, 1/1, 2/11",
    ]


def test_a_demoted_pod_is_counted_in_the_tier_in_which_it_runs() -> None:
    """Two teams at a full row: of the larger Job four pods found room, of the other none."""
    vision = tenant("vision", gpus={"gpu-serving": 4})
    lower = pods(1, "gpu-interactive", demoted=True)
    found = report(
        workload(pods(4, "gpu-serving"), lower, tier="gpu-serving", tenant=vision, hook=None),
        workload(pods(1, "gpu-batch", demoted=True), tier="gpu-serving", tenant=vision, hook=None, name="detect"),
        workload(tier="gpu-serving", tenant=vision, hook=None, name="waits", named=True),
    )
    assert [row(each) for each in (*found.tenants, found.total)] == [
        "vision gpu-serving: 2/4, 2/4, 0/0, 0/0, 0/0",
        "vision gpu-batch: 1/1, 1/1, 0/0, 0/0, 0/0",
        "vision gpu-interactive: 1/1, 1/1, 0/0, 0/0, 0/0",
        "all -: 3/6, 3/6, 0/0, 0/0, 0/0",
    ]
    (table,) = [each for each in audit_answer(found, each_workload=True).tables if each.title == "Workloads"]
    tiers = {cells[0]: cells[2] for cells in table.rows}
    assert tiers == {
        "Job/detect": "gpu-batch",
        "Job/train": "gpu-serving, gpu-interactive",
        "Job/waits": "gpu-serving",
    }


def test_errors_come_first_and_what_is_ignored_is_nowhere() -> None:
    audited = (workload(unseen()), workload(verdict="Denied", refusal="no", name="zz"))
    found = report(*audited)
    assert [each.id for each in found.findings] == ["would-be-refused", "hook-missing", "before-webhook"]
    assert fails(found.findings, Severity.ERROR)
    less = report(*audited, ignored=("would-be-refused", "hook-missing"))
    assert [each.findings for each in less.workloads] == [("before-webhook",), ()]
    assert not fails(less.findings, Severity.ERROR)
    assert fails(less.findings, Severity.WARNING)


def test_the_names_in_json_stay() -> None:
    found = msgspec.to_builtins(report(workload(unseen())).as_json())
    assert list(found) == ["mode", "total", "tenants", "findings", "workloads", "notes", "unread"]
    standings = ("agrees", "changed", "queued", "refused", "before", "outside")
    assert list(found["total"]) == ["tenant", "tier", "all", *standings]
    assert list(found["findings"][0]) == ["id", "severity", "where", "what", "fix", "see"]
    assert list(found["workloads"][0]) == [
        *workload().as_json(),
        *("tenant", "standing", "gpus", "pods", "findings"),
    ]
    assert list(found["workloads"][0]["pods"][0]) == ["count", "gpus", "className", "priority", "exist"]


def test_a_workload_without_room_is_queued_and_one_without_pods_has_no_gpus_in_brackets() -> None:
    found = report(workload(verdict="Queued"), workload(pods(2), verdict="Queued", name="runs"))
    assert (found.total.queued, found.total.agrees) == (Share(1, 0), Share(1, 2))
    (table,) = (each for each in audit_answer(found, each_workload=False).tables if "Tier" in each.columns)
    last = dict(zip(table.columns, table.rows[-1], strict=True))
    assert (last["All"], last["Agrees"], last["Would be queued"]) == ("2 (2)", "1 (2)", "1")


def test_nothing_at_all() -> None:
    assert row(report().total) == "all -: 0/0, 0/0, 0/0, 0/0, 0/0"


def test_a_foot_says_that_workloads_of_a_tenant_with_rows_are_judged_by_themselves() -> None:
    assert [*quota_note([workload(), workload(pods(), tenant=tenant(gpus={"": 4}))])] == [JUDGED_BY_ITSELF]
    assert [*quota_note([workload(tenant=tenant()), workload()])] == []
