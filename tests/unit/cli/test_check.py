"""`gpu-tiers check`: a word and a code for each line, and for all of them."""

import json
from typing import Any

import pytest
import typer
from msgspec.structs import replace

from tests.builders import a_policy, a_tenant
from tests.unit.cli.test_without_an_installation import Cluster
from tests.unit.report.lint.asking import FILE, PUBLISHED, a_cluster, active, marks, running
from tests.unit.report.lint.asking import found as lint_finds
from tests.unit.report.lint.test_registration import guards, mutating, validating
from webhook.cli import check
from webhook.cli.check import CheckReport, check_report
from webhook.cli.cluster import snapshot as reading
from webhook.cli.cluster.reader import ClusterReader
from webhook.cli.cluster.target import ASK_FOR_CLUSTER_READER
from webhook.cli.progress import Steps
from webhook.config.published import InstalledPolicy
from webhook.kube.errors import failure
from webhook.policy.quota.tenant_quotas import read_tenant
from webhook.report.lint.snapshot import ClusterSnapshot, DryRun


def checked(**parts: Any) -> CheckReport:
    """Return the outcome for a cluster without readable certificates."""
    return check_report(a_cluster(unread={"configurations": "list of webhook configurations"}, **parts))


def lines(report: CheckReport) -> dict[str, tuple[str, int]]:
    return {each.name: (str(each.word), each.code) for each in report.checks}


def test_what_could_not_be_read_is_unknown_and_nothing_else_is() -> None:
    report = checked()
    assert (report.word, report.code) == ("unknown", 3)
    assert lines(report) == {
        "registered": ("unknown", 3),
        "webhook": ("ok", 0),
        "certificates": ("unknown", 3),
        "leader": ("ok", 0),
        "ledger": ("ok", 0),
        "tenants": ("ok", 0),
        "policy": ("ok", 0),
        "replica": ("ok", 0),
    }
    (registered, webhook, *_) = report.checks
    assert registered.what == "can't be checked without list of webhook configurations"
    assert webhook.what == "answered a dry run in 0.1 s"


def test_a_role_is_named_only_for_what_takes_a_right() -> None:
    lacking = {"namespaces": "a policy that can be read"}
    assert check_report(a_cluster(unread=lacking)).missing == ()
    refused = a_cluster(unread={"namespaces": "the right to list namespaces"}, refused=frozenset({"namespaces"}))
    assert check_report(refused).missing == (ASK_FOR_CLUSTER_READER,)


def test_what_fails_counts_more_than_what_is_unknown() -> None:
    report = checked(**running(leader="", dry_run=DryRun(marks()[:1], 10.0)))
    assert (report.word, report.code) == ("failed", 1)
    assert lines(report)["leader"] == lines(report)["webhook"] == ("failed", 1)


def test_what_the_leader_wrote_is_not_called_well_where_nobody_leads() -> None:
    report = checked(**running(leader=""))
    assert lines(report)["ledger"] == lines(report)["policy"] == ("unknown", 3)
    (result,) = [each.what for each in report.checks if each.name == "policy"]
    assert result == "can't be checked without a replica that leads"
    broken = replace(PUBLISHED, problem="teirs: there is no such field")
    report = checked(**running(leader="", installed=InstalledPolicy("gpu-tiers/gpu-tiers", FILE, broken)))
    assert lines(report)["policy"] == ("failed", 1), "what was wrong when somebody last looked is told"


def test_a_tenant_that_the_page_calls_not_well_fails_it() -> None:
    """A change of the policy lost a tier, so the tenant's quota for it says nothing any more."""
    beta = read_tenant(a_tenant("beta", quotas=[{"tier": "gold", "gpus": 4}]).json())
    report = checked(tenants=active(beta, conditions=[{"type": "Exact", "status": "True"}]))
    (result,) = [each for each in report.checks if each.name == "tenants"]
    assert (report.word, result.word) == ("failed", "failed")
    assert result.what.startswith('TenantQuota/beta: spec.quotas[0].tier: unknown tier "gold"')


def test_the_tiers_that_there_are_stand_once_in_a_line() -> None:
    """A tier was removed that several places name: two tenants, and the policy."""
    beta, gamma = (
        read_tenant(a_tenant(name, maxTier="gold", quotas=[{"tier": "gold", "gpus": 4}]).json())
        for name in ("beta", "gamma")
    )
    exact = [{"type": "Exact", "status": "True"}]
    tenants = (*active(beta, conditions=exact), *active(gamma, conditions=exact))
    (result,) = [each.what for each in checked(tenants=tenants).checks if each.name == "tenants"]
    tiers = f"known tiers: {a_policy().tiers.names()}"
    unknown = 'unknown tier "gold"'
    assert result == (
        f"TenantQuota/beta: spec.maxTier: {unknown}; TenantQuota/beta: spec.quotas[0].tier: {unknown}; "
        f"TenantQuota/gamma: spec.maxTier: {unknown}; no tier is allowed; "
        f"TenantQuota/gamma: spec.quotas[0].tier: {unknown}; {tiers}; this row limits nothing"
    )
    mistakes = [f"{place}: gold is no tier" for place in ("defaultTier", "rules[0].tier")]
    broken = replace(PUBLISHED, problem="; ".join(f"{each}; {tiers}" for each in mistakes))
    report = checked(**running(installed=InstalledPolicy("gpu-tiers/gpu-tiers", FILE, broken)))
    (result,) = [each.what for each in report.checks if each.name == "policy"]
    assert result.endswith(f": {mistakes[0]}; {mistakes[1]}; {tiers}")


class Unanswered(Cluster):
    """An API server whose webhook gives no answer, so that it says where it asked."""

    async def try_create(self, place: str, body: object, warnings: list[str], *, seconds: float) -> None:
        del body, warnings, seconds
        url = "https://gpu-tiers.gpu-tiers.svc:443/k3v9x2m7q4w8z1c5b6n0p-d4f7h2/validate?timeout=5s"
        said = f'failed to call webhook: Post "{url}": context deadline exceeded'
        raise failure("POST", place, 500, json.dumps({"message": said}).encode())


async def test_a_pipeline_that_keeps_the_answer_keeps_no_secret() -> None:
    asked = await reading._dry_run(Unanswered(), "default", "gpu-batch")  # type: ignore[arg-type]
    assert asked.said.startswith('failed to call webhook: Post "https://gpu-tiers.gpu-tiers.svc:443/SECRET/validate?')


def test_where_the_api_server_refuses_for_want_of_an_answer_the_way_out_is_named() -> None:
    said = 'Internal error occurred: failed calling webhook "pods.validate.gpu-tiers.dev": … connection reset by peer'
    dead = checked(**running(dry_run=DryRun((), 0.0, said)))
    assert dead.way_out.endswith("docs/break-glass.md has the way out.")
    another = said.replace("gpu-tiers.dev", "example.com")
    assert checked(**running(dry_run=DryRun((), 0.0, another))).way_out == "", "of another webhook it is none"


def test_while_break_glass_is_on_gpu_pods_are_said_to_start_without_a_tier() -> None:
    silent = running(dry_run=DryRun((), 0.0))
    assert "so GPU pods start now without a tier, a hook or quota. docs/break-glass.md" in checked(**silent).way_out
    assert checked(policy=a_policy(mode="Warn"), **silent).way_out == "", "as the mode says"
    weak = a_cluster(configurations=(mutating(), validating(failurePolicy="Ignore")))
    assert "whenever the webhook does not answer, GPU pods start without a tier" in check_report(weak).way_out
    strict = a_cluster(configurations=(mutating(), validating()))
    assert check_report(strict).way_out == ""


class Asked:
    """An API server that asks one of the two webhooks, which answers; nobody holds the Lease."""

    async def try_create(self, place: str, tree: object, warnings: list[str], **how: object) -> None:
        del place, tree, how
        warnings.append(marks()[1].warning())

    async def get(self, place: str) -> dict[str, object]:
        del place
        return {}


async def test_of_a_configuration_that_is_missing_it_is_not_said_that_the_webhook_hangs() -> None:
    """The API server asks nobody by it, so nobody marks the dry run."""
    client: Any = Asked()
    reader = ClusterReader(client, a_policy(), Steps(), lookups=None)  # type: ignore[arg-type]
    there = guards("hold", "ceilings", "claims-in-use")
    half = a_cluster(configurations=(validating(),), admission_policies=there, leader="")
    dry_run = await reading.dry_run_of(reader, half, "default")
    cluster = replace(half, dry_run=dry_run, unread=reader.needs)
    result = {each.name: (str(each.word), each.what) for each in check_report(cluster).checks}
    assert result["webhook"] == ("unknown", "can't be checked without the MutatingWebhookConfiguration of gpu-tiers")
    assert result["registered"][0] == "failed"
    assert result["registered"][1].endswith("no pod gets a tier, and in Enforce GPU pods are refused")
    assert result["replica"][0] == "ok", "the other webhook has answered"
    assert lint_finds("webhook-silent", cluster) == []


async def test_a_policy_that_was_broken_from_the_first_is_reported_with_its_mistakes() -> None:
    installed, policy, no_tiers = await check._installed(Cluster("gpu-tiers"))  # type: ignore[arg-type]
    report = check_report(ClusterSnapshot(policy, a_cluster().now, **running(installed=installed)))
    (result,) = [each for each in report.checks if each.name == "policy"]
    mistake = "not a TierPolicy: expected a mapping with apiVersion and kind"
    assert result.what == f"ConfigMap gpu-tiers/gpu-tiers: was not taken, none is active: {mistake}"
    assert result.word == "failed"
    assert no_tiers == "a policy that can be read", "so nothing is said of the tiers that tenants name"


@pytest.mark.parametrize(("duration", "seconds"), [("0s", 0), ("90s", 90), ("3m", 180), ("1h30m", 5400)])
def test_a_duration_is_written_as_kubectl_takes_it(duration: str, seconds: int) -> None:
    assert check._seconds(duration) == seconds


@pytest.mark.parametrize("duration", ["", "3", "soon", "1d", "-3m"])
def test_what_is_no_duration_is_refused(duration: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a duration; write 90s, 3m or 1h"):
        check._seconds(duration)
