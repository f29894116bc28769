"""`gpu-tiers policy diff` as a person runs it before a change of policy is merged."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tests.builders import TenantBuilder, a_job, a_namespace, a_pod, a_tenant, a_workload, policy_file
from tests.builders.built import Built
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
    vision = a_tenant("vision", namespace="vision", allowedTiers=["gpu-serving"])
    search = a_tenant("search", namespace="search").allowing("4", tier="gpu-training")
    tenants = [each.json() for each in (vision, search, a_tenant("free"))]
    (tmp_path / "tenants.yaml").write_text(yaml.safe_dump_all(tenants))
    (tmp_path / "app.yaml").write_text(yaml.safe_dump(a_namespace().json()))
    asked = (tmp_path / "app.yaml", "--tenants", tmp_path / "tenants.yaml")
    code, out, errors = diff("four-tier", "three-tier", *asked)
    assert (code, errors) == (1, "")
    unknown = 'unknown tier "gpu-training"; known tiers: critical, normal, scavenger; this row limits nothing\n'
    assert f"TenantQuota search   Ready   Active → UnknownTier: spec.quotas[0].tier: {unknown}" in out
    assert "TenantQuota vision   Ready   Active → UnknownTier: spec.allowedTiers[0]: " in out
    assert out.endswith("2 of 2 objects change: 2 are no longer Ready\n"), "a tenant without names of tiers stays"
    assert "2 of 2 objects change: 2 become Ready\n" in diff("three-tier", "four-tier", *asked)[1]
    script = json.loads(diff("four-tier", "three-tier", *asked, "-o", "json")[1])
    assert {each["effect"] for each in script["changes"]} == {"unready"}


def test_a_new_selector_that_selects_namespaces_of_another_tenant(tmp_path: Path) -> None:
    quotas = {"before": a_tenant("beta", namespace="beta"), "after": a_tenant("beta")}
    for name, quota in quotas.items():
        trees = [each.having("metadata.creationTimestamp", None).json() for each in (quota, a_tenant("alpha"))]
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all([*trees, a_namespace().json()]))
    sets = ("--tenants", tmp_path / "before.yaml", "--new-tenants", tmp_path / "after.yaml")
    _, out, _ = diff(OLD, OLD, EXAMPLES / "pod-batch.yaml", *sets)
    told = "TenantQuota alpha selects team-alpha too; the one that was created first applies there."
    assert f"TenantQuota beta   Ready   Active → Overlap: {told}" in out


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


def test_a_change_of_mode_is_said(tmp_path: Path) -> None:
    audit = tmp_path / "audit.yaml"
    audit.write_text(policy_file(mode="Audit"))
    _, out, _ = diff(audit, OLD, EXAMPLES / "pod-batch.yaml", *TENANTS)
    assert out.endswith("The mode changes from Audit to Enforce; the objects are judged as in Enforce.\n")
    assert diff(audit, OLD, "-f", EXAMPLES / "pod-batch.yaml", *TENANTS)[1] == out, "as kubectl has it"


def test_a_file_that_names_no_mode_changes_none(tmp_path: Path) -> None:
    """The chart's values have the mode, so a policy beside them has none."""
    (tmp_path / "new.yaml").write_text(policy_file().replace("mode: Enforce\n", ""))
    for new in (tmp_path / "new.yaml", "four-tier"):
        assert "mode" not in diff(OLD, new, EXAMPLES / "pod-batch.yaml", *TENANTS)[1]


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
    assert diff(OLD, OLD, *job, "--new-tenants", tmp_path / "new")[2].startswith("--new-tenants: needs --tenants")


def changes(tmp_path: Path, before: TenantBuilder, after: TenantBuilder, *workloads: Built) -> list[dict[str, Any]]:
    """Return the changes of these workloads from one spec of their tenant to another."""
    files = {"before": [before], "after": [after], "workloads": [*workloads]}
    for name, objects in files.items():
        text = yaml.safe_dump_all([each.json() for each in (*objects, a_namespace())])
        (tmp_path / f"{name}.yaml").write_text(text)
    sets = ("--tenants", tmp_path / "before.yaml", "--new-tenants", tmp_path / "after.yaml")
    _, out, errors = diff(OLD, OLD, tmp_path / "workloads.yaml", *sets, "-o", "json")
    assert errors == ""
    found: list[dict[str, Any]] = json.loads(out)["changes"]
    return found


def test_a_quota_that_one_set_alone_has_is_named(tmp_path: Path) -> None:
    found = changes(tmp_path, a_tenant("leaves"), a_tenant("comes", maxTier="no-such-tier"))
    assert [(each["name"], each["effect"], each["fields"][0]["old"]) for each in found] == [
        ("comes", "created", "absent"),
        ("leaves", "removed", "Active"),
    ]
    assert found[0]["fields"][0]["new"].startswith('UnknownTier: spec.maxTier: unknown tier "no-such-tier"')


HOLDS = a_tenant(onExceed="Hold").allowing(4)
JOB = a_job(a_pod().asking(2), name="evaluate")


@pytest.mark.parametrize(
    ("after", "told"), [("Deny", "refused"), ("Warn", "admitted"), ("Demote", "demoted"), ("Hold", "")]
)
def test_what_happens_above_the_quota_is_compared_too(tmp_path: Path, after: str, told: str) -> None:
    """Each workload is judged against an empty quota, where a queue and a refusal look alike."""
    found = changes(tmp_path, HOLDS, HOLDS.having("spec.onExceed", after), JOB)
    fields = [
        (each["effect"], field["field"], field["old"], field["new"]) for each in found for field in each["fields"]
    ]
    assert fields == ([("above", "above quota", "queued", told)] if told else [])


def test_a_workload_that_was_queued_and_is_admitted_and_the_reverse(tmp_path: Path) -> None:
    """A RayCluster runs with 2 of its 6 GPUs. The others wait where the row has 4, and start where it has 8."""
    workers = {
        "replicas": 3,
        "minReplicas": 1,
        "maxReplicas": 3,
        "groupName": "w",
        "template": a_pod().asking(2).template(),
    }
    head = {"template": a_pod().running("ray", "start").template()}
    spec = {"enableInTreeAutoscaling": True, "headGroupSpec": head, "workerGroupSpecs": [workers]}
    ray = a_workload("ray.io/v1", "RayCluster", "explore", **spec)
    (admitted,) = changes(tmp_path, HOLDS, HOLDS.having("spec.quotas.0.gpus", 8), ray)
    (queued,) = changes(tmp_path, HOLDS.having("spec.quotas.0.gpus", 8), HOLDS, ray)
    assert [each["effect"] for each in (admitted, queued)] == ["admitted", "queued"]
    assert [(each["old"], each["new"]) for each in admitted["fields"] if each["field"] == "verdict"] == [
        ("Queued", "Allowed")
    ]
