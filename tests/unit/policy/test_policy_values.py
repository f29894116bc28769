"""Rules, tiers, modes and labels: the small decisions."""

import pytest

from tests.builders import PodBuilder, a_job, a_pod, a_policy, a_workload, live_classes, some_facts
from webhook.admission.verdict import Verdict, under
from webhook.objects.group_kind import GroupKind
from webhook.policy.assignment.consistency import drift
from webhook.policy.assignment.explicit import matches
from webhook.policy.assignment.request import Assignment
from webhook.policy.values.tier_policy import Match, Mode
from webhook.policy.values.tiers import PriorityClass, class_in_force, disagreements

JOB = a_job(name="night").labelled({"team": "a"})
OWNED = a_pod().asking().labelled({"app": "x"})

MATCHES: list[tuple[Match, bool]] = [
    (Match(kinds=(GroupKind("batch", "Job"),)), True),
    (Match(kinds=(GroupKind("batch.volcano.sh", "Job"),)), False),
    (Match(kinds=(GroupKind("apps", "Deployment"), GroupKind("jobset.x-k8s.io", "JobSet"))), True),
    (Match(labels={"team": "a"}), True),
    (Match(labels={"app": "x"}), True),
    (Match(labels={"app": "x", "team": "a"}), False),
    (Match(namespaces=("team-beta", "team-alpha")), True),
    (Match(namespaces=("team-beta",)), False),
    (Match(service_accounts=("team-alpha:default",)), True),
    (Match(service_accounts=("team-beta:default",)), False),
    (Match(kinds=(GroupKind("batch", "Job"),), namespaces=("team-beta",)), False),
]


@pytest.mark.parametrize(("match", "applies"), MATCHES)
def test_a_rule_applies_where_every_part_holds(match: Match, applies: bool) -> None:
    facts = some_facts(JOB, a_workload("jobset.x-k8s.io/v1alpha2", "JobSet"))
    assert matches(match, OWNED.view(), facts) is applies


def test_tiers_and_classes_that_agree() -> None:
    policy = a_policy()
    assert disagreements(policy.tiers, live_classes(policy)) == []
    assert disagreements(policy.tiers, {}) == [], "a class that is missing is made by the chart"


DIFFERENT = [
    (
        PriorityClass("gpu-batch", 401),
        (
            "tiers.gpu-batch.value: 400, but PriorityClass/gpu-batch exists with 401; a PriorityClass's value is "
            "immutable: use that value or another tier name"
        ),
    ),
    (
        PriorityClass("gpu-batch-nonpreempting", 400),
        (
            "tiers.gpu-batch.preemptionPolicy: Never, but PriorityClass/gpu-batch-nonpreempting exists with "
            "PreemptLowerPriority; a PriorityClass's preemptionPolicy is immutable: delete the class, or use another "
            "tier name"
        ),
    ),
    (
        PriorityClass("gpu-interactive", 200, "Never", global_default=True),
        (
            "tiers.gpu-interactive: PriorityClass/gpu-interactive is globalDefault, so every pod of the cluster would "
            "carry it; make another class the default"
        ),
    ),
]


@pytest.mark.parametrize(("live", "sentence"), DIFFERENT)
def test_tiers_and_classes_that_disagree(live: PriorityClass, sentence: str) -> None:
    assert disagreements(a_policy().tiers, {live.name: live}) == [sentence]


def test_tiers_rank_by_value_and_have_two_classes_each() -> None:
    tiers = a_policy().tiers
    assert tiers.names() == "gpu-training, gpu-serving, gpu-batch, gpu-interactive"
    batch = tiers.get("gpu-batch")
    assert batch
    assert class_in_force(batch, adoption=False) == "gpu-batch"
    assert class_in_force(batch, adoption=True) == "gpu-batch-nonpreempting"
    assert tiers.of_class("gpu-batch-nonpreempting") is batch
    assert tiers.of_class("") is None
    reached = [tiers.reached_by(value) for value in (1000, 999, 199, -1)]
    assert [tier.name if tier else None for tier in reached] == ["gpu-training", "gpu-serving", None, None]


@pytest.mark.parametrize(
    ("installed", "label", "mode"),
    [
        ("Audit", None, Mode.Audit),
        ("Audit", "Enforce", Mode.Enforce),
        ("Warn", "Audit", Mode.Warn),
        ("Enforce", "Audit", Mode.Enforce),
        ("Warn", "nonsense", Mode.Warn),
    ],
)
def test_a_namespace_may_be_stricter_and_never_milder(installed: str, label: str | None, mode: Mode) -> None:
    assert a_policy(mode=installed).mode_in(label) is mode


VERDICT = Verdict(Assignment(None, "label", "x"), ({"op": "add"},), ("careful",), "no", "alpha")


def test_each_mode_lets_through_its_part_of_a_verdict() -> None:
    assert under(Mode.Enforce, VERDICT) == VERDICT
    warned = under(Mode.Warn, VERDICT)
    assert (warned.refusal, warned.patch) == (None, VERDICT.patch)
    assert warned.warnings == ("careful", "would be refused: no")
    seen = under(Mode.Audit, VERDICT)
    assert (seen.patch, seen.warnings, seen.refusal) == ((), (), None)
    assert (seen.assignment, seen.tenant) == (VERDICT.assignment, "alpha")


@pytest.mark.parametrize(
    ("verdict", "outcome"), [(VERDICT, "denied"), (Verdict(patch=({},)), "patched"), (Verdict(), "allowed")]
)
def test_a_verdict_in_a_word(verdict: Verdict, outcome: str) -> None:
    assert verdict.outcome == outcome


BATCH = a_pod().of_class("gpu-batch")
FIXED = "a pod's tier is fixed when it is created: delete the pod and create it again with the label"
LABEL = "metadata.labels[gpu-tiers.dev/tier]"
DRIFTS: list[tuple[PodBuilder, PodBuilder, str | None]] = [
    (BATCH.of_tier("gpu-batch"), BATCH.of_tier("gpu-batch"), None),
    (
        BATCH.of_tier("gpu-batch"),
        BATCH.of_tier("gpu-training"),
        f"{LABEL}: gpu-training, but this pod runs as gpu-batch; {FIXED}",
    ),
    (BATCH.of_tier("gpu-batch"), BATCH, f"{LABEL}: absent, but this pod runs as gpu-batch; {FIXED}"),
    (a_pod(), a_pod().of_tier("gpu-batch"), f"{LABEL}: gpu-batch, but this pod runs without a tier; {FIXED}"),
    (BATCH, BATCH.of_tier("gpu-batch"), None),
    (BATCH.of_tier("wrong"), BATCH.of_tier("gpu-batch"), None),
    (BATCH.of_tier("wrong"), BATCH.of_tier("wrong").labelled({"app": "x"}), None),
    (a_pod().of_tier("wrong"), a_pod(), None),
    (
        BATCH.of_tier("gpu-batch"),
        BATCH.of_tier("gpu-training").having("metadata.deletionTimestamp", "2026-11-21T00:00:00Z"),
        None,
    ),
]


@pytest.mark.parametrize(("old", "new", "refusal"), DRIFTS)
def test_a_tier_label_may_only_come_to_say_the_truth(old: PodBuilder, new: PodBuilder, refusal: str | None) -> None:
    assert drift(old.view(), new.view(), a_policy()) == refusal
