"""Rendering for a policy that writes to workloads: entries of the mutating webhook, and Kueue's classes."""

from pathlib import Path

import pytest
import yaml

from webhook.policy.workloads.kind_table import BUILT_IN

from .conftest import Render
from .helm import CHART, Chart, Manifest, helm

MUTATING = "MutatingWebhookConfiguration"
KUEUE = {"kueue": {"workloadPriorityClasses": True}}
MUTATE = {"templates": "Mutate"}
QUEUED = "'kueue.x-k8s.io/queue-name' in object.metadata"
APPLIED = "!object.metadata.?ownerReferences.orValue([]).exists("


def written(chart: Chart) -> dict[str, Manifest]:
    """The entries that write to workloads, by API group."""
    ends = ".workloads.mutate.gpu-tiers.dev"
    return {name.removesuffix(ends): each for name, each in chart.entries(MUTATING).items() if name.endswith(ends)}


def reviewed(chart: Chart) -> dict[str, Manifest]:
    """The entries that review workloads, by API group."""
    ends = ".workloads.gpu-tiers.dev"
    return {name.removesuffix(ends): each for name, each in chart.entries().items() if name.endswith(ends)}


def test_by_default_volcanos_jobs_and_jobs_that_fail_are_asked_about(render: Render) -> None:
    chart = render(mode="Enforce")
    entries = written(chart)
    assert list(entries) == ["batch", "batch.volcano.sh"]
    asked = entries["batch"]["matchConditions"][0]["expression"]
    assert "request.resource.resource == 'jobs' && " in asked
    assert "!has(object.spec.podFailurePolicy)" in asked
    leave = render(mode="Enforce", policy={"checkpoint": {"podFailurePolicy": "Leave"}})
    assert list(written(leave)) == ["batch.volcano.sh"]
    assert entries["batch.volcano.sh"]["matchConditions"] == [{"name": "is-written-to", "expression": "true"}]
    assert not chart.of("WorkloadPriorityClass")


@pytest.mark.parametrize("policy", [KUEUE, MUTATE, KUEUE | MUTATE], ids=["kueue", "templates", "both"])
def test_the_kinds_are_those_that_are_reviewed(render: Render, policy: Manifest) -> None:
    chart = render(mode="Enforce", policy=policy)
    entries = written(chart)
    assert sorted(entries) == sorted({row.group or "core" for row in BUILT_IN.rows})
    for group, entry in entries.items():
        (rule,), (seen,) = entry["rules"], reviewed(chart)[group]["rules"]
        assert rule == seen | {"operations": ["CREATE"]}
        assert (entry["failurePolicy"], entry["reinvocationPolicy"]) == ("Ignore", "IfNeeded")


def test_only_what_is_written_to_is_asked_about(render: Render) -> None:
    cases = (
        (KUEUE, [QUEUED], [APPLIED]),
        (MUTATE, [APPLIED], [QUEUED]),
        (KUEUE | MUTATE, [QUEUED, APPLIED], []),
    )
    for policy, there, absent in cases:
        entries = written(render(mode="Enforce", policy=policy))
        del entries["batch.volcano.sh"]
        for entry in entries.values():
            condition = entry["matchConditions"][0]["expression"]
            assert all(each in condition for each in there)
            assert not any(each in condition for each in absent)


def test_where_kueue_manages_jobs_without_a_queues_name_all_are_asked_about(render: Render) -> None:
    policy = {"kueue": KUEUE["kueue"] | {"manageJobsWithoutQueueName": True}}
    assert {each["matchConditions"][0]["expression"] for each in written(render(policy=policy)).values()} == {"true"}


@pytest.mark.parametrize("templates", ["Off", False])
def test_templates_that_are_off_are_not_reviewed(render: Render, *, templates: object) -> None:
    """YAML takes a bare Off for false."""
    chart = render(mode="Enforce", policy={"templates": templates} | KUEUE)
    assert not reviewed(chart)
    assert "tenantquotas.validate.gpu-tiers.dev" in chart.entries()
    assert written(chart), "Kueue is told all the same"


def test_a_pods_label_for_kueue_is_looked_at_only_where_kueue_is_configured(render: Render) -> None:
    for policy, looked_at in (({}, False), (KUEUE, True)):
        *_, changed = render(policy=policy).entries()["pods-update.validate.gpu-tiers.dev"]["matchConditions"]
        assert ("kueue.x-k8s.io/priority-class" in changed["expression"]) == looked_at


def queue_classes(home: Path, *arguments: str) -> list[Manifest]:
    answer = helm("template", "x", str(CHART), *arguments, home=home, values={"policy": KUEUE})
    assert not answer.code, answer.stderr
    found = yaml.load_all(answer.stdout, yaml.CSafeLoader)
    return [each for each in found if each and each["kind"] == "WorkloadPriorityClass"]


def test_kueue_gets_a_class_of_each_tier(home: Path) -> None:
    classes = queue_classes(home)
    assert {each["metadata"]["name"]: each["value"] for each in classes} == {
        "gpu-training": 1000, "gpu-serving": 800, "gpu-batch": 400, "gpu-interactive": 200,
    }  # fmt: skip
    assert {each["apiVersion"] for each in classes} == {"kueue.x-k8s.io/v1beta2"}
    assert {each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in classes} == {"keep"}
