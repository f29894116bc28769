"""`gpu-tiers policy diff` as a person runs it before a change of policy is merged."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.builders import a_namespace, a_tenant, policy_file
from tests.unit.cli.reviewing import EXAMPLES
from webhook.cli.main import app

OLD = EXAMPLES / "policies" / "four-tier.yaml"
TENANTS = ("--tenants", EXAMPLES / "tenants")
NO_TENANTS = "No ceiling and no quota was checked: no TenantQuota was given (--tenants).\n"


def diff(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    result = CliRunner().invoke(app, ["policy", "diff", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """Only what proves a type raises a tier, interactive runs as batch, and training may take longer to save."""
    file = tmp_path / "new.yaml"
    types = {"interactive": "gpu-batch"}
    hooks = {"training": {"seconds": 300}}
    file.write_text(policy_file(raiseBy="Proven", workloadTypes=types, checkpoint=hooks))
    return file


def answer(name: str) -> str:
    """Return the expected output of the command."""
    return (Path(__file__).parent / "answers" / name).read_text(encoding="utf-8")


def manifests(*names: str) -> list[Path]:
    return [EXAMPLES / f"{name}.yaml" for name in names]


def test_nothing_changes_from_a_policy_to_itself() -> None:
    assert diff(OLD, OLD, EXAMPLES / "pod-batch.yaml") == (0, f"0 of 1 object change\n\n{NO_TENANTS}", "")


def test_each_field_that_changes_is_shown_with_both_sides_and_the_step(new: Path) -> None:
    asked = manifests(
        "deployment-jupyter-notebook", "job-training", "leaderworkerset-vllm", "mpijob-allreduce", "pod-batch",
        "pytorchjob-llm-finetune",
    )  # fmt: skip
    code, out, errors = diff(OLD, new, *asked, *TENANTS)
    assert (code, errors) == (1, "")
    assert out == answer("policy-diff.txt")


def test_from_one_preset_to_another() -> None:
    code, out, _ = diff("four-tier", "three-tier", *manifests("deployment-vllm", "pod-training"))
    assert (code, out) == (1, answer("policy-diff-presets.txt"))


def test_a_pull_request_shows_it_as_a_table(new: Path) -> None:
    _, out, _ = diff(OLD, new, *manifests("deployment-jupyter-notebook"), *TENANTS, "-o", "markdown")
    assert out == answer("policy-diff-markdown.txt")


def test_a_script_reads_json(new: Path) -> None:
    source = EXAMPLES / "deployment-jupyter-notebook.yaml"
    code, out, _ = diff(OLD, new, source, *TENANTS, "-o", "json")
    assert code == 1
    assert json.loads(out) == {
        "format": "gpu-tiers.dev/v1",
        "objects": 1,
        "changed": 1,
        "changes": [
            {
                "source": f"{source}:2",
                "kind": "Deployment",
                "namespace": "team-alpha",
                "name": "jupyter-notebook",
                "effect": "up",
                "fields": [
                    {
                        "field": "tier",
                        "old": "gpu-interactive 200, evicts nobody (workload-type)",
                        "new": "gpu-batch 400 (workload-type)",
                    }
                ],
            }
        ],
    }


def test_tenants_that_name_a_tier_which_the_new_policy_lacks_are_no_longer_ready(tmp_path: Path) -> None:
    """Also where nothing runs yet: both quotas would become UnknownTier, and no workload shows it."""
    tenants = [a_tenant("vision", allowedTiers=["gpu-serving"]), a_tenant("search").allowing("4", tier="gpu-training")]
    (tmp_path / "tenants.yaml").write_text(yaml.safe_dump_all([each.json() for each in [*tenants, a_tenant("free")]]))
    (tmp_path / "app.yaml").write_text(yaml.safe_dump(a_namespace().json()))
    asked = (tmp_path / "app.yaml", "--tenants", tmp_path / "tenants.yaml")
    code, out, errors = diff("four-tier", "three-tier", *asked)
    assert (code, errors) == (1, "")
    unknown = 'unknown tier "gpu-training"; known tiers: critical, normal, scavenger\n'
    assert f"TenantQuota search   Ready   Active → UnknownTier: spec.quotas[0].tier: {unknown}" in out
    assert "TenantQuota vision   Ready   Active → UnknownTier: spec.allowedTiers[0]: " in out
    assert out.endswith("2 of 2 objects change: 2 are no longer Ready\n"), "a tenant without names of tiers stays"
    assert "2 of 2 objects change: 2 become Ready\n" in diff("three-tier", "four-tier", *asked)[1]
    script = json.loads(diff("four-tier", "three-tier", *asked, "-o", "json")[1])
    assert {each["effect"] for each in script["changes"]} == {"unready"}


SMALL = {"tiers": [{"name": "gpu-batch", "value": 7}], "defaultTier": "gpu-batch"}


@pytest.mark.parametrize(
    ("policy", "effect", "change"),
    [
        ({"adoption": True}, "changes its tier", "gpu-batch 400 (label) → gpu-batch-nonpreempting 400, evicts nobody"),
        (SMALL, "goes down", "gpu-batch 400 (label) → gpu-batch 7 (label)"),
    ],
)
def test_what_makes_a_rank_counts(tmp_path: Path, policy: dict[str, object], effect: str, change: str) -> None:
    file = tmp_path / "new.yaml"
    file.write_text(policy_file(**policy))
    _, out, _ = diff(OLD, file, EXAMPLES / "pod-batch.yaml")
    assert change in out
    assert f"1 of 1 object changes: 1 {effect}\n" in out


def test_gpus_that_count_no_more(tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    file.write_text(policy_file(resources=[{"name": "amd.com/gpu"}], uncounted="Warn"))
    notebook = EXAMPLES / "deployment-jupyter-notebook.yaml"
    _, out, _ = diff(OLD, file, notebook, *TENANTS)
    assert "verdict    Allowed → LeftAlone\n" in out
    assert "tier       gpu-interactive 200, evicts nobody (workload-type) → none\n" in out
    assert "1 of 1 object changes: 1 loses its tier\n" in out
    assert "1 of 1 object changes: 1 gets a tier\n" in diff(file, OLD, notebook, *TENANTS)[1]


def test_a_change_of_mode_is_said() -> None:
    _, out, _ = diff("four-tier", OLD, EXAMPLES / "pod-batch.yaml", *TENANTS)
    assert out.endswith("The mode changes from Audit to Enforce; the objects are judged as in Enforce.\n")
    assert diff("four-tier", OLD, "-f", EXAMPLES / "pod-batch.yaml", *TENANTS)[1] == out, "as kubectl has it"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("five-tier", OLD, "x"),
            "five-tier: there is no such file and no such preset; the presets are four-tier, inference-first, three-ti",
        ),
        ((OLD, OLD, "absent.yaml"), "absent.yaml: there is no such file or folder"),
        ((EXAMPLES / "pod-batch.yaml", OLD, OLD), f"{EXAMPLES}/pod-batch.yaml: apiVersion:"),
    ],
)
def test_bad_input_ends_with_two(arguments: tuple[str | Path, ...], problem: str) -> None:
    code, out, errors = diff(*arguments)
    assert (code, out) == (2, "")
    assert problem in errors


def test_a_changed_quota_is_compared_with_the_one_that_it_replaces(tmp_path: Path) -> None:
    """Alpha's training row goes from 6 GPUs to 16: the job of 8 GPUs that was refused is let in."""
    (tmp_path / "new").mkdir()
    for each in (EXAMPLES / "tenants").glob("*.yaml"):
        text = each.read_text(encoding="utf-8")
        (tmp_path / "new" / each.name).write_text(text.replace('gpus: "6"', 'gpus: "16"'))
    job = manifests("pytorchjob-llm-finetune")
    code, out, errors = diff(OLD, OLD, *job, *TENANTS, "--new-tenants", tmp_path / "new")
    assert (code, errors) == (1, "")
    assert "1 of 1 object changes: 1 is admitted" in out
    assert diff(OLD, OLD, *job, *TENANTS, "--new-tenants", EXAMPLES / "tenants")[0] == 0
    assert diff(OLD, OLD, *job, "--new-tenants", tmp_path / "new")[2].startswith("--new-tenants: goes with --tenants")
