"""`gpu-tiers lint` of files, and how findings are written."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.builders import Tree, a_namespace, a_tenant, policy_file
from tests.builders.built import Built
from webhook.cli.lint import MOST_SHOWN, lint_answer
from webhook.cli.main import app
from webhook.report.lint.rule import LintFinding, LintReport, NotChecked, Severity


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(policy_file(preset="three-tier", checkpoint={"maxGracePeriodSeconds": 1800}))
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["lint", *map(str, arguments)])


def test_a_policy_alone(policy: Path) -> None:
    answer = run("--policy", policy)
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "cap-beyond-autoscaler   checkpoint.maxGracePeriodSeconds   1800 is above the 600 s" in answer.stdout
    assert "rules need a cluster.\n" in answer.stdout
    assert run("--policy", policy, "--fail-on=warning").exit_code == 1
    assert run("--policy", policy, "--fail-on=warning", "--ignore=cap-beyond-autoscaler").exit_code == 0


def test_tenants_beside_it(policy: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tenants"
    folder.mkdir()
    trees = (a_namespace().json(), a_tenant(maxTier="gold").json())
    (folder / "all.yaml").write_text(yaml.safe_dump_all(trees))
    answer = run("--policy", policy, "--tenants", folder, "--output=json")
    assert answer.exit_code == 1
    (found,) = (each for each in json.loads(answer.stdout)["findings"] if each["severity"] == "error")
    assert (found["id"], found["where"]) == ("tenant-not-active", "TenantQuota/alpha")
    assert found["what"].startswith('spec.maxTier: unknown tier "gold"; known tiers: ')
    assert found["fix"] == "Correct the TenantQuota."
    assert found["see"].endswith("/docs/lint.md#tenant-not-active")


def written(tmp_path: Path, *objects: Built) -> Path:
    file = tmp_path / "tenants.yaml"
    file.write_text(yaml.safe_dump_all([each.json() for each in objects]))
    return file


def test_whoever_lints_a_quota_reads_what_its_review_and_its_apply_warn_of(policy: Path, tmp_path: Path) -> None:
    quota = a_tenant(namespace="team-aplha", maxTier="normal", onExceed="Hold").allowing(4, tier="critical")
    file = written(tmp_path, a_namespace(), quota, a_tenant("beta", onExceed="Hold"))
    answer = run("--policy", policy, "--tenants", file, "--output=json")
    assert answer.exit_code == 0, answer.stderr
    found = [each for each in json.loads(answer.stdout)["findings"] if each["id"] == "quota-without-effect"]
    assert [(each["where"], each["what"].split()[0]) for each in found] == [
        ("TenantQuota/alpha", "spec.quotas[0].tier:"),
        ("TenantQuota/alpha", "spec.namespaceSelector"),
        ("TenantQuota/beta", "spec.onExceed:"),
    ]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"maxTeir": "normal"}, "spec.maxTeir: there is no such field; write one of namespaceSelector, maxTier, "),
        ({"onExceed": "Queue"}, 'spec.onExceed: "Queue" is not accepted; write one of Deny, Demote, Warn, Hold'),
        ({"reserveSeconds": "15m"}, 'spec.reserveSeconds: "15m" should be a whole number'),
    ],
)
def test_a_quota_that_the_api_server_can_t_read(policy: Path, tmp_path: Path, spec: Tree, said: str) -> None:
    file = written(tmp_path, a_tenant(**spec))
    answer = run("--policy", policy, "--tenants", file)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"{file}:1: TenantQuota/alpha: {said}")


def test_tenants_of_files_have_no_accounts_that_could_be_wrong(policy: Path, tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text(yaml.safe_dump_all([a_tenant("search").json(), a_tenant("vision").json()]))
    report = json.loads(run("--policy", policy, "--tenants", file, "--output=json").stdout)
    assert "ledger-not-exact" not in {each["id"] for each in report["findings"]}
    (left,) = report["notChecked"]
    assert {"ledger-not-exact", "gangs-stranded"} <= {*left["rules"]}, "they need a cluster"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--policy", "nowhere.yaml"), "nowhere.yaml"),
        (("--tenants", "tenants"), "--tenants: needs --policy"),
        (("--ignore", "no-such"), '--ignore: "no-such" is no rule; the rules are address-incomplete, boost-ignored,'),
        (("--kubeconfig", "nowhere"), "there is no kubeconfig at nowhere"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], said: str) -> None:
    answer = run(*arguments)
    assert answer.exit_code == 2
    assert said in answer.stderr


def test_a_rule_with_many_findings_leaves_room_for_others() -> None:
    page = "docs/lint.md#grace"
    many = tuple(LintFinding("grace", Severity.WARNING, f"Job/{i}", "too long", "Do.", page) for i in range(25))
    (table,) = lint_answer(LintReport(many)).tables
    assert len(table.rows) == MOST_SHOWN
    assert lint_answer(LintReport(many)).notes == (f"grace: Do. See {page}", "grace: 5 more; -o json has all.")


def test_nothing_found() -> None:
    left = NotChecked("a cluster", ("webhook-missing", "ca-expires"))
    answer = lint_answer(LintReport((), (left,), checked=9))
    assert (answer.notes, answer.missing) == (("Nothing found by 9 rules.", "2 more rules need a cluster."), ())
