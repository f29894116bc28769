"""People see what a tenant has used of its GPU-hours, and until when it has more GPUs."""

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec.structs import replace
from typer.testing import CliRunner

from tests.builders import a_deployment, a_namespace, a_pod
from tests.builders.tenants import TenantBuilder
from tests.builders.world import FakeApi
from tests.unit.page.samples import a_content
from webhook.cli.main import app
from webhook.cli.usage import usage_answer
from webhook.cli.why_pending.queue_position import in_queue
from webhook.page.routes import rendered
from webhook.policy.quota.budgets import budget_warnings
from webhook.policy.quota.charges import row_usage
from webhook.policy.quota.tenant_quotas import tenant_quota_of
from webhook.report.tenants import QueuedShown, QueueShown, TenantShown, tenant_shown
from webhook.sentences.sentence import sentence


def quota(used_gpu_seconds: float, **more: Any) -> dict[str, Any]:
    budget = {"tier": "gpu-training", "gpuHours": 5000, "per": "Month", "timeZone": "Europe/Berlin"}
    period = {"from": "2026-10-31T23:00:00Z", "until": "2026-11-30T23:00:00Z", "since": "2026-10-31T23:00:00Z"}
    used = {"usedGpuSeconds": str(used_gpu_seconds), "gpus": "8", "asOf": "2026-11-20T10:00:00.000Z"}
    grant = {"tier": "gpu-training", "gpus": "8", "from": "2026-11-20T00:00:00Z", "until": "2026-12-15T00:00:00Z"}
    rows = [{"tier": "gpu-training", "hard": "16", "used": "8"}, {"hard": "16", "used": "8"}]
    return {
        "apiVersion": "gpu-tiers.dev/v1alpha1",
        "kind": "TenantQuota",
        "metadata": {"name": "alpha"},
        "spec": {
            "namespaceSelector": {},
            "quotas": [{"tier": "gpu-training", "gpus": 8}, {"gpus": 16}],
            "budgets": [{**budget, **more}],
            "grants": [{**grant, "gpus": 8}],
        },
        "status": {
            "budgets": [{"tier": "gpu-training", "per": "Month", "timeZone": "Europe/Berlin", **period, **used}],
            "grants": [grant],
            "usage": rows,
        },
    }


def shown(used_gpu_seconds: float, **more: Any) -> TenantShown:
    return tenant_shown(tenant_quota_of(quota(used_gpu_seconds, **more)))


def test_usage_tells_when_the_hours_are_used_up_and_until_when_a_row_has_more() -> None:
    answer = usage_answer([shown(4200 * 3600)])
    _, hours = answer.tables
    ends, out = "2026-11-30T23:00:00Z", "2026-11-24T14:00:00Z"
    assert hours.rows == [("alpha", "gpu-training", "Month", "4,200", "5,000", ends, out)]
    assert "alpha: gpu-training has 8 GPUs more until 15 December 2026, 00:00 UTC" in answer.notes


def test_a_budget_that_is_used_up_many_times_has_no_percentage() -> None:
    (budget,) = shown(4200 * 3600).budgets
    assert budget.sentence.startswith("4,200 of 5,000 GPU-hours of gpu-training are used, 84 % (new hours on")
    (budget,) = shown(424750 * 3600).budgets
    assert budget.sentence.startswith("424,750 of 5,000 GPU-hours of gpu-training are used (new hours on")


def test_where_a_budget_is_used_up_no_quota_is_left_in_what_it_counts() -> None:
    assert [row.left for row in shown(4200 * 3600).rows] == [8, 8]
    assert [row.left for row in shown(5000 * 3600).rows] == [0, 8]


def test_usage_says_why_nothing_is_left_of_a_row_that_has_room() -> None:
    answer = usage_answer([shown(5010 * 3600)])
    rows, hours = answer.tables
    assert [row[-1] for row in rows.rows] == ["0 (hours used up)", "8"]
    assert hours.rows[0][-1] == "used up"
    ((of_tier, total), (budget,)) = (msgspec.to_builtins(answer.value)[0][each] for each in ("rows", "budgets"))
    assert (of_tier["closedBy"], total["closedBy"]) == ("GPU-hours of gpu-training", "")
    assert (budget["per"], budget["from"], budget["usedUp"]) == ("Month", "2026-10-31T23:00:00Z", True)


def test_a_budget_between_two_times_is_shown_with_both() -> None:
    tree = quota(0)
    begins, ends = "2026-11-01T00:00:00Z", "2026-11-30T00:00:00Z"
    tree["spec"]["budgets"] = [{"tier": "gpu-training", "gpuHours": 600, "from": begins, "until": ends}]
    (note,) = tree["status"]["budgets"]
    tree["status"]["budgets"] = [{**note, "per": None, "from": begins, "until": ends}]
    _, hours = usage_answer([tenant_shown(tenant_quota_of(tree))]).tables
    assert hours.rows[0][2:6] == (f"from {begins}", "0", "600", ends)
    waits = QueuedShown(1, "lab", "Pod/p", "u", "gpu-training", 1, 2, "", "GPU-hours of gpu-training", for_hours=True)
    assert waits.waits_for == "the end of the budget", "there are no new hours"
    assert replace(waits, per="Day").waits_for == "new GPU-hours of gpu-training"


def test_the_page_tells_used_up_hours_from_a_full_row_and_what_follows() -> None:
    page = rendered(a_content(tenants=(shown(5010 * 3600, onExhausted="Demote"),)))
    of_tier, total = re.findall(r'data-label="Quota left">(.*?)</td><td data-label="Beyond that">(.*?)<', page)
    assert (of_tier, total) == (("hours used up", "Demote"), ("8", "Deny"))


def test_who_waits_for_hours_does_not_wait_for_room() -> None:
    tree = quota(5010 * 3600, onExhausted="Hold")
    waits = {"namespace": "lab", "workload": "Pod/p", "uid": "u", "pods": 1, "gpus": "2", "since": "x"}
    row, hours = "gpu-training", "GPU-hours of gpu-training"
    tree["status"]["queue"] = {"entries": [{**waits, "short": each} for each in (hours, row)]}
    queue = tenant_shown(tenant_quota_of(tree)).queue
    assert [each.waits_for for each in queue.entries] == ["new GPU-hours of gpu-training", "room in gpu-training"]


def test_who_applies_a_tenantquota_reads_when_its_hours_end() -> None:
    tree = quota(4200 * 3600)
    tenant = tenant_quota_of(tree).tenant
    assert tenant is not None
    (warning,) = map(sentence, budget_warnings(tenant, tree["status"]))
    assert "4,200 of 5,000 GPU-hours of gpu-training are used, 84 %" in warning
    assert "use up the rest on 24 November 2026, 15:00 Europe/Berlin" in warning


@pytest.mark.parametrize(
    ("changed", "ends"),
    [({"timeZone": "Asia/Tokyo"}, "1 December 2026, 00:00 Asia/Tokyo"), ({"per": "Week"}, None)],
)
def test_who_changes_the_period_of_a_budget_reads_of_the_new_one(changed: dict[str, str], ends: str | None) -> None:
    tree = quota(5010 * 3600, **changed)
    tenant = tenant_quota_of(tree).tenant
    assert tenant is not None
    warnings = [sentence(each) for each in budget_warnings(tenant, tree["status"])]
    told = [*warnings, *(sentence(row_usage(row, {}, {})) for row in tenant.spent)]
    assert len(told) == (2 if ends else 0), "hours per week are another budget, which nobody has counted"
    assert all(f"(new hours on {ends})" in each for each in told)


def test_a_pod_that_waits_for_hours_reads_when_there_are_new_ones() -> None:
    place = QueuedShown(1, "lab", "Pod/p", "u", "gpu-training", 1, 2, "", "GPU-hours of gpu-training")
    tenant = replace(shown(5000 * 3600), queue=QueueShown(1, 2, 1, (place,)))
    assert "new hours on 1 December 2026, 00:00 Europe/Berlin" in next(in_queue(tenant, place))


def test_a_used_up_budget_that_only_warns_is_told_to_whoever_applies_a_pod_or_a_workload() -> None:
    tree = quota(5000 * 3600, onExhausted="Warn")
    tree["spec"]["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "team-alpha"}}
    world = FakeApi(TenantBuilder(tree))
    words = "5,000 of 5,000 GPU-hours of gpu-training are used"
    for each in (a_pod("p").asking(1), a_deployment().having("spec.template.spec", a_pod().asking(1).json()["spec"])):
        answer = asyncio.run(world.create(each.of_tier("gpu-training")))
        assert answer.allowed
        assert any(words in said and "it is admitted" in said for said in answer.warnings), answer.warnings
    other = asyncio.run(world.create(a_pod("q").asking(1).of_tier("gpu-batch")))
    assert not any(words in said for said in other.warnings)


@pytest.mark.parametrize(
    ("allowed", "used_gpu_seconds", "said"),
    [
        ("5000", 5010 * 3600, "5,010 of 5,000"),
        ("0.02", 110, "0.03 of 0.02"),
        ("5000.5", 5000.6 * 3600, "5,000.5 of 5,000.5"),
    ],
)
def test_all_sentences_have_the_one_number_of_the_real_use(allowed: str, used_gpu_seconds: float, said: str) -> None:
    tree = quota(used_gpu_seconds, gpuHours=allowed)
    tenant = tenant_quota_of(tree).tenant
    assert tenant is not None
    (row,), (budget,) = tenant.spent, shown(used_gpu_seconds, gpuHours=allowed).budgets
    (warning,) = map(sentence, budget_warnings(tenant, tree["status"]))
    for each in (sentence(row_usage(row, {}, {})), warning, budget.sentence):
        assert f"{said} GPU-hours of gpu-training are used" in each
    assert f"{budget.used_hours:,} of {budget.gpu_hours:,}" == said


def test_offline_nobody_knows_the_hours(tmp_path: Path) -> None:
    tree = {key: each for key, each in quota(0).items() if key != "status"}
    tree["spec"]["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "team-alpha"}}
    pod = a_pod("p").asking(1).of_tier("gpu-training").json()
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([tree, a_namespace().json(), pod]))
    said = CliRunner().invoke(app, ["review", "-f", str(tmp_path / "all.yaml")]).output
    assert "not checked: the budgets of tenant alpha, which its cluster counts" in said


@pytest.mark.parametrize(("until", "allowed"), [("2099-01-01T00:00:00Z", True), ("2026-01-01T00:00:00Z", False)])
def test_offline_the_grants_of_today_apply(tmp_path: Path, until: str, allowed: bool) -> None:
    grant = {"tier": "gpu-training", "gpus": 8, "until": until}
    spec = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team-alpha"}},
        "quotas": [{"tier": "gpu-training", "gpus": 4}],
        "grants": [grant],
    }
    tree = {"apiVersion": "gpu-tiers.dev/v1alpha1", "kind": "TenantQuota", "metadata": {"name": "alpha"}, "spec": spec}
    pod = a_pod("p").asking(8).of_tier("gpu-training").json()
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([tree, a_namespace().json(), pod]))
    answer = CliRunner().invoke(app, ["review", "-f", str(tmp_path / "all.yaml")])
    assert (answer.exit_code == 0) is allowed
    assert ("judged with the grants of tenant alpha that apply now" in answer.output) is allowed
