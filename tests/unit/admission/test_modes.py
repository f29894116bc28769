"""The part of a verdict that each mode lets through: Audit only the record, Warn the patch, Enforce all."""

import pytest

from tests.builders import a_namespace, a_pod, a_policy, a_pytorchjob, a_tenant
from tests.builders.world import FakeApi
from webhook.policy.values.tier_policy import Mode

JOB = a_pytorchjob()
ALPHA = a_tenant().allowing("6", tier="gpu-training")


def world(mode: str, namespace_mode: str | None = None) -> FakeApi:
    own = () if namespace_mode is None else (a_namespace().labelled({"gpu-tiers.dev/mode": namespace_mode}),)
    return FakeApi(JOB, ALPHA, *own, policy=a_policy(mode=mode))


async def test_audit_patches_nothing_and_records_what_would_be() -> None:
    audit = world("Audit")
    answer = await audit.mutate(a_pod().asking("2").owned_by(JOB))
    assert answer.patch == []
    assert answer.warnings == []
    assert answer.audit == {
        "tier": "gpu-training",
        "assigned-by": "workload-type: training, by its kind, PyTorchJob/work",
    }
    (record,) = audit.records
    webhook, request, verdict, mode = record
    assert (webhook, request.namespace, mode) == ("mutate", "team-alpha", Mode.Audit)
    assert verdict.patch, "the record holds the verdict before the mode"


async def test_audit_refuses_nothing_and_records_what_it_would() -> None:
    audit = world("Audit")
    answer = await audit.validate(audit.stored(a_pod().asking("8").owned_by(JOB)))
    assert answer.allowed
    assert answer.warnings == []
    assert answer.audit["would-refuse"].startswith("tenant alpha: gpu-training allows 6 GPUs; this pod asks for 8.")
    assert audit.records[-1][2].outcome == "denied"
    assert audit.records[-1][2].tenant == "alpha"


async def test_audit_does_not_miss_the_patch_it_did_not_make() -> None:
    audit = world("Audit")
    answer = await audit.create(a_pod().asking("2").owned_by(JOB))
    assert answer.allowed
    assert "would-refuse" not in answer.audit


async def test_audit_books_nothing() -> None:
    audit = world("Audit")
    for _ in range(4):
        assert "would-refuse" not in (await audit.create(a_pod().asking("4").owned_by(JOB))).audit


async def test_audit_records_a_class_that_is_missing() -> None:
    audit = world("Audit")
    del audit.known.live["gpu-training"]
    answer = await audit.create(a_pod().asking("2").owned_by(JOB))
    assert answer.allowed
    assert answer.audit["would-refuse"].startswith("PriorityClass/gpu-training of tier gpu-training does not exist")


async def test_warn_patches_and_turns_a_refusal_to_a_warning() -> None:
    warn = world("Warn")
    assert (await warn.mutate(a_pod().asking("2").owned_by(JOB))).patch
    answer = await warn.create(a_pod().asking("8").owned_by(JOB))
    assert answer.allowed
    (warning,) = answer.warnings
    assert warning == (
        "would be refused: tenant alpha: gpu-training allows 6 GPUs; this pod asks for 8. "
        "Would fit: gpu-serving, gpu-batch, gpu-interactive. See TenantQuota/alpha."
    )
    assert answer.audit["would-refuse"] == f"{warning.removeprefix('would be refused: ')} [too-large]"


async def test_enforce_refuses() -> None:
    answer = await world("Enforce").create(a_pod().asking("8").owned_by(JOB))
    assert not answer.allowed
    assert answer.warnings == []
    assert "would-refuse" not in answer.audit


@pytest.mark.parametrize(
    ("installed", "own", "refused", "patched"),
    [
        ("Audit", None, False, False),
        ("Audit", "Warn", False, True),
        ("Audit", "Enforce", True, True),
        ("Warn", "Audit", False, True),
        ("Warn", "Enforce", True, True),
        ("Enforce", "Audit", True, True),
        ("Enforce", "Warn", True, True),
        ("Enforce", "nonsense", True, True),
        ("Audit", "nonsense", False, False),
    ],
)
async def test_a_namespace_may_be_stricter_and_never_milder(
    installed: str, own: str | None, *, refused: bool, patched: bool
) -> None:
    somewhere = world(installed, own)
    assert bool((await somewhere.mutate(a_pod().asking("2").owned_by(JOB))).patch) is patched
    assert (not (await somewhere.create(a_pod().asking("8").owned_by(JOB))).allowed) is refused


async def test_audit_annotations_stay_the_same_across_passes() -> None:
    enforce = world("Enforce")
    first = await enforce.mutate(a_pod().asking("2").owned_by(JOB))
    second = await enforce.mutate(first.patched)
    validated = await enforce.validate(enforce.stored(first.patched))
    assert first.audit == second.audit == validated.audit
    assert not any("/" in key for key in first.audit)


async def test_every_verdict_is_recorded_once() -> None:
    enforce = world("Enforce")
    await enforce.create(a_pod().asking("2").owned_by(JOB))
    assert [(webhook, verdict.outcome) for webhook, _, verdict, _ in enforce.records] == [
        ("mutate", "patched"),
        ("mutate", "allowed"),
        ("validate", "allowed"),
    ]


async def test_a_policy_that_changes_between_two_reviews() -> None:
    changing = world("Enforce")
    assert (await changing.mutate(a_pod().asking("2"))).patched["spec"]["priority"] == 200
    changing.policy = a_policy(defaultTier="gpu-batch")
    assert (await changing.mutate(a_pod().asking("2"))).patched["spec"]["priority"] == 400
