"""What a guess may do to a tier: lower it, never raise it."""

import pytest

from tests.builders import PodBuilder, a_job, a_pod, a_policy, a_tenant, a_tier_request, assigned

VLLM = a_pod().running("vllm", "serve").asking(name="second")
JUPYTER = a_pod().running("jupyter").asking(name="second")


@pytest.mark.parametrize(
    ("pod", "tenant", "fields", "tier"),
    [
        (VLLM, None, {}, "gpu-interactive"),
        (VLLM, None, {"guessesMayRaise": True}, "gpu-serving"),
        (VLLM, "gpu-batch", {}, "gpu-batch"),
        (VLLM, "gpu-training", {}, "gpu-serving"),
        (JUPYTER, "gpu-batch", {}, "gpu-interactive"),
        (JUPYTER, None, {"defaultTier": "gpu-serving"}, "gpu-interactive"),
    ],
)
def test_a_guess_may_lower_below_the_default_and_never_raise_above_it(
    pod: PodBuilder, tenant: str | None, fields: dict[str, object], tier: str
) -> None:
    """The default is the one that would apply: the tenant's where it has one."""
    given = a_tenant(defaultTier=tenant) if tenant else None
    found = assigned(pod, policy=a_policy(**fields), tenant=given)
    assert found.tier
    assert found.tier.name == tier


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        ("serving", "workload-type: - (serving is a guess, and a guess can't raise the tier)"),
        ("training", "workload-type: -"),  # there is no tier for serving that could have raised it
    ],
)
def test_the_trace_says_that_a_guess_was_held_back_only_where_it_was(type_: str, said: str) -> None:
    tiers = [{"name": "low", "value": 1000}, {"name": "high", "value": 2000}]
    policy = a_policy(tiers=tiers, defaultTier="low", workloadTypes={type_: "high"})
    assert said in assigned(VLLM, policy=policy).trace


def test_a_job_is_batch_unless_what_it_runs_or_is_called_says_that_it_trains() -> None:
    pod = a_pod("x").running("python", "main.py").asking()
    assert str(assigned(pod, a_job(name="score"))) == ("workload-type: batch, by the usual use of its kind, Job/score")
    trains = a_pod("x").running("torchrun", "main.py").asking()
    assert (
        str(a_tier_request(trains, a_job(name="score")).evidence) == 'training, a guess from its command ("torchrun")'
    )
    serves = a_pod("x").running("python", "embed.py", image="vllm/vllm-openai:v1").asking()
    assert str(a_tier_request(serves, a_job(name="score")).evidence) == "batch, by the usual use of its kind, Job/score"


def test_a_guess_never_raises_above_the_usual_use_of_the_kind_nor_throws_it_away() -> None:
    pod = a_pod("x").running("torchrun", "main.py").asking()
    found = assigned(pod, a_job(name="score"))
    assert str(found) == "workload-type: batch, by the usual use of its kind, Job/score"
