"""`gpu-tiers test` as a person or a CI job runs it: suites in, a table, an exit code."""

import json
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from tests.unit.cli.reviewing import EXAMPLES
from webhook.cli.main import app
from webhook.cli.policy_tests.suite import Step
from webhook.policy.assignment.steps import STEPS

HEAD = f"""\
apiVersion: config.gpu-tiers.dev/v1alpha1
kind: TierPolicyTest
policy: {EXAMPLES}/policies/four-tier.yaml
tenants: [{EXAMPLES}/tenants]
cases:
"""
NOTEBOOK = f"""\
- name: a notebook trains
  workload: {EXAMPLES}/deployment-jupyter-notebook.yaml
"""
TIERS = "gpu-training, gpu-serving, gpu-batch, gpu-interactive"
TOO_LARGE = (
    "tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8 in all. Would fit: gpu-batch. "
    "See TenantQuota/alpha. [too-large]"
)


def run(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    result = CliRunner().invoke(app, ["test", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def suite(tmp_path: Path, cases: str, head: str = HEAD) -> Path:
    file = tmp_path / "gpu-tiers-test.yaml"
    file.write_text(head + cases)
    return file


def judged(tmp_path: Path, cases: str) -> list[str]:
    """The results of these cases: "pass", or what differs."""
    _, out, errors = run(suite(tmp_path, cases), "-o", "json")
    assert errors == ""
    return [
        "; ".join(f"{each['field']}: {each['expected']} / {each['actual']}" for each in case["differences"]) or "pass"
        for case in json.loads(out)["cases"]
    ]


def test_the_examples_pass() -> None:
    code, out, errors = run(EXAMPLES / "tests")
    assert (code, errors) == (0, "")
    assert out.endswith("\n19 cases in 1 suite: 19 passed, 0 failed\n")


def test_a_failure_shows_both_sides_and_where_it_is_written(tmp_path: Path) -> None:
    file = suite(
        tmp_path,
        NOTEBOOK
        + f"""\
  expect: {{tier: gpu-training, type: training, hook: file}}
- name: the sweep runs as batch
  workload: {EXAMPLES}/jobset-sweep.yaml
  expect: {{tier: gpu-batch}}
""",
    )
    code, out, _ = run(file)
    assert code == 1
    assert out == (
        f"""\
{"SUITE".ljust(len(str(file)))}   CASE                      OBJECT                                   RESULT
{file}   a notebook trains         Deployment team-alpha/jupyter-notebook   FAIL
{file}   the sweep runs as batch   JobSet team-alpha/sweep                  pass

{file}:6: a notebook trains
FIELD   EXPECTED       ACTUAL
tier    gpu-training   gpu-interactive
type    training       interactive
hook    file           none
why                    workload-type: interactive, a guess from its image ("jupyter")

2 cases in 1 suite: 1 passed, 1 failed
"""
    )
    _, failures, _ = run(file, "--fail-only")
    assert "the sweep" not in failures
    assert failures.endswith("2 cases in 1 suite: 1 passed, 1 failed\n")


def test_a_refusal_that_nobody_expects_is_a_failure(tmp_path: Path) -> None:
    assert judged(
        tmp_path,
        f"""\
- {{name: it fits, workload: {EXAMPLES}/pytorchjob-llm-finetune.yaml, expect: {{tier: gpu-training}}}}
- {{name: it is refused, workload: {EXAMPLES}/pod-batch.yaml, expect: {{message: at 6 of 6}}}}
- name: for another reason
  workload: {EXAMPLES}/pytorchjob-llm-finetune.yaml
  expect: {{message: at 6 of 6}}
""",
    ) == [f"verdict: Allowed / Denied: {TOO_LARGE}", "verdict: Denied / Allowed", f"message: at 6 of 6 / {TOO_LARGE}"]


def test_warnings_are_all_or_none(tmp_path: Path) -> None:
    sweep = f"workload: {EXAMPLES}/warnings/job-backoff.yaml"
    warning = "[job-backoff] preemptions count against backoffLimit 3; set restartPolicy Never, ignore DisruptionTarget"
    assert judged(
        tmp_path,
        f"""\
- {{name: by id, {sweep}, expect: {{warnings: [job-backoff]}}}}
- {{name: by text, {sweep}, expect: {{warnings: [preemptions count against backoffLimit 3]}}}}
- {{name: none, {sweep}, expect: {{warnings: []}}}}
- {{name: another too, {sweep}, expect: {{warnings: [job-backoff, type-unknown]}}}}
- {{name: not compared, {sweep}, expect: {{tier: gpu-training}}}}
""",
    ) == ["pass", "pass", f"warnings: none / {warning}", f"warnings: job-backoff; type-unknown / {warning}", "pass"]


def test_each_case_starts_with_what_it_says_is_in_use(tmp_path: Path) -> None:
    job = f"workload: {EXAMPLES}/job-training.yaml"
    results = judged(
        tmp_path,
        f"""\
- {{name: all are free, {job}, expect: {{}}}}
- {{name: again, {job}, expect: {{}}}}
- {{name: on the total, {job}, used: [{{gpus: "15.5"}}], expect: {{message: the total is at 15.5 of 16 GPUs}}}}
- {{name: elsewhere, {job}, used: [{{tier: gpu-interactive, gpus: 2}}], expect: {{}}}}
""",
    )
    assert results == ["pass"] * 4


HELD = """\
apiVersion: gpu-tiers.dev/v1alpha1
kind: TenantQuota
metadata: {name: alpha}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team-alpha}}
  quotas: [{tier: gpu-training, gpus: 6, onExceed: Hold}, {gpus: 16}]
"""


def test_what_a_tenant_that_holds_has_no_room_for_is_queued(tmp_path: Path) -> None:
    """What has room starts at once, and above a row without Hold it is refused. The same of a pod and of a gang."""
    (tmp_path / "alpha.yaml").write_text(HELD)
    names = "job-training", "pod-training", "pod-batch"
    job, pod, batch = (f"workload: {EXAMPLES}/{name}.yaml" for name in names)
    template = (
        "{metadata: {labels: {gpu-tiers.dev/tier: gpu-training}}, spec: {restartPolicy: Never, "
        "containers: [{name: c, image: c, resources: {limits: {nvidia.com/gpu: 2}}}]}}"
    )
    metadata = "metadata: {name: gang, namespace: team-alpha}"
    gang = f"workload: {{apiVersion: batch/v1, kind: Job, {metadata}, spec: {{parallelism: 2, template: {template}}}}}"
    full, half = "used: [{tier: gpu-training, gpus: 6}]", "used: [{tier: gpu-training, gpus: 3}]"
    cases = f"""\
- {{name: one is queued, {job}, {full}, expect: {{verdict: Queued, tier: gpu-training}}}}
- {{name: a pod is queued, {pod}, {full}, expect: {{verdict: Queued}}}}
- {{name: the whole gang is queued, {gang}, {half}, expect: {{verdict: Queued}}}}
- {{name: the gang has room, {gang}, expect: {{}}}}
- {{name: nobody expects a queue, {job}, {full}, expect: {{tier: gpu-training}}}}
- {{name: its other tiers are refused, {batch}, used: [{{gpus: 16}}], expect: {{message: the total}}}}
"""
    head = HEAD.replace(f"{EXAMPLES}/tenants", "alpha.yaml")
    found = json.loads(run(suite(tmp_path, cases, head), "-o", "json")[1])["cases"]
    differences = [[(each["expected"], each["actual"]) for each in case["differences"]] for case in found]
    assert differences == [[], [], [], [], [("Allowed", "Queued")], []]


def test_a_mistyped_row_is_bad_input_because_the_api_server_refuses_it(tmp_path: Path) -> None:
    """The row would limit nothing, and each test of it would pass for a wrong reason."""
    (tmp_path / "alpha.yaml").write_text(HELD.replace("gpu-training", "gpu-trainnig"))
    file = suite(tmp_path, NOTEBOOK + "  expect: {}\n", HEAD.replace(f"{EXAMPLES}/tenants", "alpha.yaml"))
    code, out, errors = run(file)
    assert (code, out) == (2, "")
    unknown = f'spec.quotas[0].tier: unknown tier "gpu-trainnig"; known tiers: {TIERS} [unknown-tier]'
    assert errors == f"{file}:4: tenants[0]: {tmp_path}/alpha.yaml:1: TenantQuota/alpha: {unknown}\n"


def test_pods_that_find_no_room_are_a_refusal_too(tmp_path: Path) -> None:
    """kubectl apply creates the Deployment, but its third pod is refused."""
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chat"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "chat"}},
            "template": {
                "metadata": {"labels": {"app": "chat"}},
                "spec": {
                    "containers": [
                        {"name": "c", "image": "vllm/vllm-openai", "resources": {"limits": {"nvidia.com/gpu": 1}}}
                    ]
                },
            },
        },
    }
    case = {"workload": deployment, "namespace": "team-beta"}
    cases = [
        {"name": "3 fit", "used": [{"gpus": 9}], "expect": {"tier": "gpu-serving"}} | case,
        {"name": "2 fit", "used": [{"gpus": 10}], "expect": {"message": "the total is at 12 of 12 GPUs"}} | case,
    ]
    assert judged(tmp_path, f" {json.dumps(cases)}") == ["pass", "pass"]


def test_a_file_of_several_workloads_needs_the_name_of_one(tmp_path: Path) -> None:
    manifests = tmp_path / "app.yaml"
    parts = [EXAMPLES / "pod-batch.yaml", EXAMPLES / "pod-interactive.yaml", EXAMPLES / "tenants" / "beta.yaml"]
    manifests.write_text("\n---\n".join(each.read_text() for each in parts))
    case = "- {name: a, workload: app.yaml, OBJECT expect: {tier: gpu-interactive}}\n"
    assert judged(tmp_path, case.replace("OBJECT", "object: Pod/debug-shell,")) == ["pass"]
    two = "Pod/transcribe, Pod/debug-shell"
    for text, problem in (
        ("", f"holds 2 workloads; name one in `object`: {two}"),
        ("object: Pod/shell,", f"holds no Pod/shell; it holds {two}, TenantQuota/beta"),
    ):
        file = suite(tmp_path, case.replace("OBJECT", text))
        assert run(file) == (2, "", f"{file}:6: cases[0].workload: {problem}\n")


@pytest.mark.parametrize(
    ("cases", "problem"),
    [
        (
            f"{NOTEBOOK}  expect: {{teir: gpu-training}}",
            "8: cases[0].expect.teir: there is no such field; did you mean tier?",
        ),
        (
            f"{NOTEBOOK}  expect:\n    type: training\n    tier: gold",
            f'10: cases[0].expect.tier: "gold" is no tier of the policy; write one of {TIERS}',
        ),
        (
            f"{NOTEBOOK}  expect: {{verdict: denied}}",
            "8: cases[0].expect.verdict: \"denied\": should be 'Allowed', 'Queued', 'Demoted', 'Denied' or 'LeftAlone'",
        ),
        (
            f"{NOTEBOOK}  expect: {{verdict: Allowed, message: full}}",
            "8: cases[0].expect: message is a part of the refusal, so it goes with the verdict Denied, not Allowed",
        ),
        (NOTEBOOK, "6: cases[0].expect: is required"),
        (
            f"{NOTEBOOK}  used: [{{gpus: many}}]\n  expect: {{}}",
            (
                '8: cases[0].used[0].gpus: "many" is not a number of GPUs; write it as in a TenantQuota, '
                'such as 4 or "0.5"'
            ),
        ),
        (
            f"{NOTEBOOK}  used:\n  - {{gpus: 1}}\n  - {{gpus: 1, resourceFlavor: a100}}\n  expect: {{}}",
            '10: cases[0].used[1].resourceFlavor: "a100" is no resource flavor of the policy; write one of h100',
        ),
        (
            f"{NOTEBOOK}  namespace: team-beta\n  expect: {{}}",
            "7: cases[0].workload: its namespace is team-alpha, but the case says team-beta; write one of them",
        ),
        (
            "- {name: a, workload: absent.yaml, expect: {}}",
            "6: cases[0].workload: FOLDER/absent.yaml: there is no such file or folder",
        ),
        (
            "- {name: a, workload: {kind: Job}, expect: {}}",
            "6: cases[0].workload: an object needs apiVersion, kind and metadata",
        ),
        (
            f"{NOTEBOOK}  expect: {{}}\n{NOTEBOOK}  expect: {{}}",
            '5: cases: "a notebook trains" is the name of two cases; give each its own',
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_nothing_is_run(tmp_path: Path, cases: str, problem: str) -> None:
    file = suite(tmp_path, cases)
    assert run(file) == (2, "", f"{file}:{problem.replace('FOLDER', str(tmp_path))}\n")


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (HEAD.replace("policy:", "preset: gold\npolicy:"), ":1: file: write policy (a file) or preset (a name), not"),
        (HEAD.replace("policy:", "preset: gold #"), ':3: preset: preset gold: preset: "gold" does not exist; write'),
        (
            HEAD.replace("four-tier.yaml", "five.yaml"),
            f":3: policy: {EXAMPLES}/policies/five.yaml: there is no such file or folder",
        ),
        (HEAD.replace("/tenants]", "/tennants]"), f":4: tenants[0]: {EXAMPLES}/tennants: there is no such file"),
        (HEAD.replace("TierPolicyTest", "Test"), ":2: kind: \"Test\": should be 'TierPolicyTest'"),
        ("[]\n#", ": not a TierPolicyTest: expected one mapping with apiVersion, kind and cases"),
        ("{", ": not YAML: "),
    ],
)
def test_a_mistake_above_the_cases_is_reported_once(tmp_path: Path, head: str, problem: str) -> None:
    file = suite(tmp_path, f"{NOTEBOOK}  expect: {{}}" if "cases" in head else "", head)
    code, out, errors = run(file)
    assert (code, out, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(f"{file}{problem}")


def test_missing_files_are_reported_beside_the_fields_that_are_wrong(tmp_path: Path) -> None:
    cases = "- {name: a, workload: job.yaml, expect: {teir: x}}\n- {name: b, workload: pod.yaml, expect: {}}"
    file = suite(tmp_path, cases, HEAD.replace(f"{EXAMPLES}/tenants", "tenants.yaml"))
    lines = [line.removeprefix(f"{file}:") for line in run(file)[2].splitlines()]
    assert lines == [
        f"4: tenants[0]: {tmp_path}/tenants.yaml: there is no such file or folder",
        "6: cases[0].expect.teir: there is no such field; did you mean tier?",
        f"6: cases[0].workload: {tmp_path}/job.yaml: there is no such file or folder",
        f"7: cases[1].workload: {tmp_path}/pod.yaml: there is no such file or folder",
    ]


def test_a_broken_tenant_is_reported_once(tmp_path: Path) -> None:
    tenant = (EXAMPLES / "tenants" / "alpha.yaml").read_text().replace("maxTier", "maxTeir")
    (tmp_path / "tenants.yaml").write_text(tenant)
    case = f"workload: {EXAMPLES}/pod-batch.yaml, expect: {{}}}}\n"
    file = suite(
        tmp_path, f"- {{name: a, {case}- {{name: b, {case}", HEAD.replace(f"{EXAMPLES}/tenants", "tenants.yaml")
    )
    _, _, errors = run(file)
    assert errors.count("\n") == 1
    assert f"{file}:4: tenants[0]: {tmp_path}/tenants.yaml:" in errors
    assert "TenantQuota/alpha: spec.maxTeir: there is no such field" in errors


def test_pods_without_a_quota_are_not_counted_one_by_one(tmp_path: Path) -> None:
    job = (EXAMPLES / "job-batch-inference.yaml").read_text()
    (tmp_path / "job.yaml").write_text(
        job.replace("team-alpha", "elsewhere").replace("  template:", "  parallelism: 1000000\n  template:", 1)
    )
    assert judged(tmp_path, "- {name: a, workload: job.yaml, expect: {tier: gpu-batch}}") == ["pass"]


def test_suites_are_found_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = f"{NOTEBOOK}  expect: {{}}\n"
    for name in ("gpu-tiers-test.yaml", "deep/serving.gpu-tiers-test.yml", "other.yaml"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(HEAD + case)
    monkeypatch.chdir(tmp_path)
    assert run()[1].endswith("2 cases in 2 suites: 2 passed, 0 failed\n")
    assert run("other.yaml")[1].endswith("1 case in 1 suite: 1 passed, 0 failed\n")
    assert run(".", "gpu-tiers-test.yaml", "deep")[1].endswith("2 cases in 2 suites: 2 passed, 0 failed\n")
    (tmp_path / "empty").mkdir()
    nothing = "empty: holds no suite of tests; the names of their files end with gpu-tiers-test.yaml\n"
    assert run("empty") == (2, "", nothing)
    assert run("absent") == (2, "", "absent: there is no such file or folder\n")


def test_a_ci_system_reads_junit(tmp_path: Path) -> None:
    file = suite(
        tmp_path, f"{NOTEBOOK}  expect: {{tier: gpu-training}}\n{NOTEBOOK.replace('trains', 'x')}  expect: {{}}"
    )
    code, out, _ = run(file, "-o", "junit")
    difference = "tier: expected gpu-training, but is gpu-interactive"
    assert code == 1
    assert out == (
        f"""\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="gpu-tiers test" tests="2" failures="1" errors="0" skipped="0">
  <testsuite name="{file}" tests="2" failures="1" errors="0" skipped="0">
    <testcase name="a notebook trains" classname="{file}" file="{file}" time="0" line="6">
      <failure message="{difference}" type="failure">{file}:6: {difference}
why: workload-type: interactive, a guess from its image ("jupyter")</failure>
    </testcase>
    <testcase name="a notebook x" classname="{file}" file="{file}" time="0" line="9" />
  </testsuite>
</testsuites>
"""
    )


def test_a_script_reads_json(tmp_path: Path) -> None:
    file = suite(tmp_path, f"{NOTEBOOK}  expect: {{tier: gpu-training}}")
    _, out, _ = run(file, "-o", "json")
    (case,) = json.loads(out)["cases"]
    assert case == {
        "suite": str(file),
        "line": 6,
        "name": "a notebook trains",
        "object": "Deployment team-alpha/jupyter-notebook",
        "passed": False,
        "differences": [{"field": "tier", "expected": "gpu-training", "actual": "gpu-interactive"}],
        "actual": {
            "kind": "Deployment",
            "group": "apps",
            "namespace": "team-alpha",
            "name": "jupyter-notebook",
            "source": case["actual"]["source"],
            "verdict": "Allowed",
            "allowed": True,
            "tier": "gpu-interactive",
            "step": "workload-type",
            "decidedBy": case["actual"]["decidedBy"],
            "workloadType": "interactive",
            "evidence": case["actual"]["evidence"],
            "grade": case["actual"]["grade"],
            "hooks": [],
            "message": None,
            "warnings": [],
        },
    }


def test_the_steps_that_a_suite_may_name_are_those_that_there_are() -> None:
    assert get_args(Step) == tuple(name for name, _ in STEPS)
