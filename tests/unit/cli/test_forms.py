"""`gpu-tiers review -o`: what GitLab, Jenkins, GitHub and programs read of a review."""

import json
from email.message import Message
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from msgspec.structs import replace

from tests.unit.cli.reviewing import EXAMPLES, WORLD, findings, review
from webhook.admission.reviewer import Verdict
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import Finding
from webhook.objects.refusal import Reason, Refusal

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: team-alpha, labels: {gpu-tiers.dev/tier: TIER}}
spec:
  terminationGracePeriodSeconds: GRACE
  containers: [{name: main, image: vllm/vllm-openai, resources: {limits: {nvidia.com/gpu: 1}}}]
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder of the current one, as in CI: a pod that is admitted, one that is refused, and what is not an object."""
    folder = tmp_path / "de ploy"
    folder.mkdir()
    good = POD.replace("NAME", "good").replace("TIER", "gpu-batch").replace("GRACE", "4000")
    bad = POD.replace("NAME", "bad").replace("TIER", '"gold\\e<&>"').replace("GRACE", "30")
    (folder / "pods.yaml").write_text(f"{good}---\n{bad}---\n{CONFIG_MAP}")
    (folder / "values.yaml").write_text("a: 1\n")
    monkeypatch.chdir(tmp_path)
    return "de ploy"


def test_the_kind_of_a_refusal_is_that_of_its_message() -> None:
    full = Verdict(refusal=Refusal(Reason.OVER_QUOTA, "queue-class-changed", name="a", tier="b"))
    pod = Finding(Document("", {"kind": "Pod"}), full, {})
    made = Finding(Document("", {"kind": "Job"}), Verdict(), {}, pods=(pod,))
    found = Finding(Document("", {"kind": "Workflow"}), Verdict(), {}, inside=(made,))
    assert (found.refusal_kind, found.message) == ("over-quota", pod.message)
    invalid = Refusal(Reason.INVALID, "queue-class-changed", name="a", tier="b")
    assert replace(found, invalid=(invalid,)).refusal_kind == "refused", "the API server refuses the object before"


WARNING = "terminationGracePeriodSeconds 4000 is above the policy's 600; another pod may wait that long"
SENTENCE = 'metadata.labels[gpu-tiers.dev/tier]: unknown tier "gold <&>"; known tiers: gpu-training'


def test_junit_has_a_test_case_for_each_object(repository: str) -> None:
    code, out, errors = review(repository, "-o", "junit")
    assert (code, errors) == (1, "")
    root = ET.fromstring(out)  # noqa: S314 - we wrote it
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    for each in (root, suite):
        assert each.attrib == {
            "name": "gpu-tiers review", "tests": "3", "failures": "1", "errors": "0", "skipped": "1"
        }  # fmt: skip
    good, bad, other = suite.findall("testcase")
    assert good.attrib == {
        "classname": "de ploy/pods.yaml", "name": "Pod team-alpha/good", "time": "0", "file": "de ploy/pods.yaml",
        "line": "1",
    }  # fmt: skip
    assert [child.tag for child in good] == ["system-out"]
    assert good.findtext("system-out", "").splitlines()[::2] == [
        "tier: gpu-batch (label: the label on the pod says gpu-batch)",
        f"warning: [grace-above-cap] {WARNING}",
    ]
    failure = bad.find("failure")
    assert failure is not None
    assert failure.get("type") == "refused"
    assert SENTENCE.partition(":")[2] in failure.get("message", "")
    assert (failure.text or "").startswith("de ploy/pods.yaml:8: ")
    assert [child.tag for child in other] == ["skipped"]
    assert suite.findtext("system-out") == "left out: de ploy/values.yaml:1: values of a Helm chart"


def test_sarif_has_what_github_asks_for(repository: str) -> None:
    code, out, errors = review(repository, "-o", "sarif")
    assert (code, errors) == (1, "")
    document = json.loads(out)
    (run,) = document["runs"]
    assert (document["version"], document["$schema"][-22:]) == ("2.1.0", "sarif-schema-2.1.0.json"[-22:])
    rules, results = run["tool"]["driver"]["rules"], run["results"]
    assert run["tool"]["driver"]["name"] == "gpu-tiers"
    assert [(each["ruleId"], each["level"], line(each)) for each in results] == [
        ("grace-above-cap", "warning", 1), ("refused", "error", 8),
    ]  # fmt: skip
    assert results[0]["message"]["text"] == f"Pod team-alpha/good: {WARNING}"
    for result in results:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["partialFingerprints"]
        assert place(result)["artifactLocation"] == {"uri": "de%20ploy/pods.yaml"}
    for rule in rules:
        assert all(rule[field]["text"] for field in ("shortDescription", "fullDescription", "help"))
    (left_out,) = run["invocations"][0]["toolExecutionNotifications"]
    assert (left_out["level"], left_out["message"]["text"]) == ("note", "left out: values of a Helm chart")


def test_a_rule_links_to_its_page_where_the_package_says_where_it_is_public(
    repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Message()
    said["Project-URL"] = "Changelog, https://git.example.com/changes"
    said["Project-URL"] = "Repository, https://git.example.com/gpu-tiers"
    monkeypatch.setattr("importlib.metadata.metadata", lambda _: said)
    (run,) = json.loads(review(repository, "-o", "sarif")[1])["runs"]
    assert {each["id"]: each["helpUri"] for each in run["tool"]["driver"]["rules"]} == {
        "grace-above-cap": "https://git.example.com/gpu-tiers/blob/main/docs/warnings.md#grace-above-cap",
        "refused": "https://git.example.com/gpu-tiers/blob/main/docs/troubleshooting.md#refusals",
    }


def place(result: Any) -> Any:
    return result["locations"][0]["physicalLocation"]


def line(result: Any) -> Any:
    return place(result)["region"]["startLine"]


def test_a_finding_keeps_its_fingerprint_where_lines_are_added_above(repository: str) -> None:
    def prints() -> list[Any]:
        results = json.loads(review(repository, "-o", "sarif")[1])["runs"][0]["results"]
        return [each["partialFingerprints"] for each in results]

    before, file = prints(), Path(repository) / "pods.yaml"
    file.write_text("# one\n# two\n" + file.read_text())
    assert prints() == before


def test_over_quota_is_a_rule_of_its_own_and_so_is_each_warning() -> None:
    out = review(str(EXAMPLES), *WORLD, "-o", "sarif")[1]
    (run,) = json.loads(out)["runs"]
    rules = {each["id"]: each for each in run["tool"]["driver"]["rules"]}
    assert {"over-quota", "refused", "job-backoff", "no-controller"} <= set(rules)
    assert rules["job-backoff"]["help"]["text"].endswith("See docs/warnings.md#job-backoff of gpu-tiers.")
    uris = {place(each)["artifactLocation"]["uri"] for each in run["results"]}
    assert uris, "paths outside the current folder are whole"


def test_without_a_finding_the_report_is_whole_and_empty() -> None:
    assert json.loads(review("-", "-o", "sarif", stdin=CONFIG_MAP)[1])["runs"][0]["results"] == []
    root = ET.fromstring(review("-", "-o", "junit", "--only", "refused", stdin=CONFIG_MAP)[1])  # noqa: S314
    assert root.get("tests") == "0"


def test_yaml_says_what_json_says(repository: str) -> None:
    documents = list(yaml.safe_load_all(review(repository, "-o", "yaml")[1]))
    assert documents == findings(repository)
