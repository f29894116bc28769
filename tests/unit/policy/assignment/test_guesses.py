"""The effect of evidence of each grade on a tier, and the sentence if it was too weak."""

import pytest

from tests.builders import (
    PodBuilder,
    a_deployment,
    a_job,
    a_pod,
    a_policy,
    a_pytorchjob,
    a_tenant,
    a_tier_request,
    a_workload,
    assigned,
)
from tests.builders.words import deciding_line, words
from webhook.policy.assignment.request import TIER_LABEL, Assignment
from webhook.policy.assignment.steps import type_warnings

VLLM = a_pod().running("vllm", "serve").asking(name="second")
CHAT_SERVER = a_pod("chat-server").asking(name="second")
JUPYTER = a_pod().running("jupyter").asking(name="second")
TOO_WEAK = "hinted, too weak to raise the tier; raiseBy is Shown"
ALL_BUT_INTERACTIVE = "gpu-training, gpu-serving or gpu-batch"
TORCHRUN = a_pod("x").running("torchrun", "main.py").asking()


def tier_of(assignment: Assignment) -> str:
    assert assignment.tier
    return assignment.tier.name


@pytest.mark.parametrize(
    ("pod", "tenant", "fields", "tier"),
    [
        (VLLM, None, {}, "gpu-serving"),
        (VLLM, None, {"raiseBy": "Usual"}, "gpu-interactive"),
        (VLLM, "gpu-batch", {}, "gpu-serving"),
        (VLLM, "gpu-training", {}, "gpu-serving"),
        (CHAT_SERVER, None, {}, "gpu-interactive"),
        (CHAT_SERVER, None, {"raiseBy": "Hinted"}, "gpu-serving"),
        (CHAT_SERVER, "gpu-batch", {}, "gpu-batch"),
        (CHAT_SERVER, "gpu-training", {}, "gpu-serving"),
        (JUPYTER, "gpu-batch", {}, "gpu-interactive"),
        (JUPYTER, None, {"defaultTier": "gpu-serving"}, "gpu-interactive"),
    ],
)
def test_what_runs_gives_its_tier_and_a_name_may_only_lower(
    pod: PodBuilder, tenant: str | None, fields: dict[str, object], tier: str
) -> None:
    """Below the default that would apply: the tenant's where it has one."""
    given = a_tenant(defaultTier=tenant) if tenant else None
    assert tier_of(assigned(pod, policy=a_policy(**fields), tenant=given)) == tier


@pytest.mark.parametrize(
    ("raise_by", "tier"),
    [("Proven", "gpu-interactive"), ("Usual", "gpu-batch"), ("Shown", "gpu-training"), ("Hinted", "gpu-training")],
)
def test_a_job_that_runs_torchrun_gets_what_raise_by_lets_it_have(raise_by: str, tier: str) -> None:
    """A Job is batch by its usual use, and training by what it runs."""
    assert tier_of(assigned(TORCHRUN, a_job(name="score"), policy=a_policy(raiseBy=raise_by))) == tier


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        ("serving", f'workload-type: - (serving, a guess from its name ("server"): {TOO_WEAK})'),
        ("training", "workload-type: -"),  # there is no tier for serving that could have raised it
    ],
)
def test_the_trace_says_that_a_guess_was_not_used_only_where_it_was(type_: str, said: str) -> None:
    tiers = [{"name": "low", "value": 1000}, {"name": "high", "value": 2000}]
    policy = a_policy(tiers=tiers, defaultTier="low", workloadTypes={type_: "high"})
    assert said in words(assigned(CHAT_SERVER, policy=policy).trace)


def test_a_hint_does_not_throw_the_usual_use_of_the_kind_away() -> None:
    found = assigned(a_pod("x").running("python", "main.py").asking(), a_job(name="train-bert"))
    assert deciding_line(found) == "workload-type: batch, by the usual use of its kind, Job/train-bert"
    assert words(found.trace)[-1].endswith(f'(training, a guess from its name ("train"): {TOO_WEAK})')


def test_a_job_is_batch_unless_what_it_runs_or_is_called_says_that_it_trains() -> None:
    pod = a_pod("x").running("python", "main.py").asking()
    assert deciding_line(assigned(pod, a_job(name="score"))) == (
        "workload-type: batch, by the usual use of its kind, Job/score"
    )
    found = a_tier_request(TORCHRUN, a_job(name="score")).evidence
    assert str(found) == 'training, a guess from its command ("torchrun")'
    serves = a_pod("x").running("python", "embed.py", image="vllm/vllm-openai:v1").asking()
    assert str(a_tier_request(serves, a_job(name="score")).evidence) == "batch, by the usual use of its kind, Job/score"


WARNED = [
    (
        CHAT_SERVER,
        None,
        '[guess-too-weak] its name ("server") hints at serving; if so, label it gpu-tiers.dev/tier: gpu-serving',
    ),
    (
        a_pod("main").running("python", "main.py").asking(),
        a_job(name="train-bert"),
        '[guess-too-weak] its name ("train") hints at training; if so, label it gpu-tiers.dev/tier: gpu-training',
    ),
    (
        a_pod("main").running("python", "main.py").asking(),
        a_deployment(name="a"),
        f"[type-unknown] unknown type gets gpu-interactive; label it {TIER_LABEL}: {ALL_BUT_INTERACTIVE}",
    ),
    (VLLM, None, None),
    (a_pod("main").of_tier("gpu-batch").asking(), None, None),
    (a_pod("chat-server").of_tier("gpu-interactive").asking(), None, None),
    (a_pod("main").running("python", "main.py"), None, None),
]


@pytest.mark.parametrize(("pod", "owner", "said"), WARNED)
def test_a_warning_names_the_one_label_that_settles_it(pod: PodBuilder, owner: object, said: str | None) -> None:
    owners = () if owner is None else (owner,)
    found = [*words(type_warnings(a_tier_request(pod, *owners), assigned(pod, *owners)))]
    assert found == ([said] if said else [])


@pytest.mark.parametrize("fields", [{"maxTier": "gpu-batch"}, {"defaultTier": "gpu-serving"}])
def test_no_label_is_advised_that_would_be_refused_or_change_nothing(fields: dict[str, str]) -> None:
    tenant = a_tenant(**fields)
    request = a_tier_request(CHAT_SERVER, tenant=tenant)
    assert list(type_warnings(request, assigned(CHAT_SERVER, tenant=tenant))) == []


AT_TOP = '[guess-at-top] top tier by a guess from its command ("torchrun"); if wrong, label it gpu-tiers.dev/tier'
TWO_TIERS = [{"name": "high", "value": 2}, {"name": "low", "value": 1}]


@pytest.mark.parametrize(
    ("pod", "fields", "said"),
    [
        (TORCHRUN, {}, [AT_TOP]),
        (CHAT_SERVER, {"raiseBy": "Hinted", "preset": "inference-first"}, ["[guess-at-top]"]),
        (VLLM, {"preset": "inference-first"}, ["[guess-at-top]"]),
        (VLLM, {}, []),  # serving is not the top of four-tier
        (TORCHRUN.of_tier("gpu-training"), {}, []),
        (TORCHRUN, {"tiers": TWO_TIERS[:1], "workloadTypes": {"training": "high"}, "defaultTier": "high"}, []),
        (TORCHRUN, {"tiers": TWO_TIERS, "workloadTypes": {"training": "high"}, "defaultTier": "low"}, [AT_TOP]),
        (TORCHRUN, {"raiseBy": "Proven"}, ["[guess-too-weak]"]),
    ],
)
def test_a_guess_that_leads_to_the_top_is_warned_about_whatever_its_grade(
    pod: PodBuilder, fields: dict[str, object], said: list[str]
) -> None:
    policy = a_policy(**fields)
    found = words(type_warnings(a_tier_request(pod, policy=policy), assigned(pod, policy=policy)))
    assert len(found) == len(said)
    assert all(text.startswith(begins) for text, begins in zip(found, said, strict=True))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ("python", "/work/matmul.py"),
            "[guess-at-top] top tier by the usual use of its kind, JobSet/x; if wrong, label it gpu-tiers.dev/tier",
        ),
        (("torchrun", "main.py"), None),
    ],
)
def test_the_usual_use_alone_is_warned_about_at_the_top_and_not_where_what_runs_confirms_it(
    command: tuple[str, ...], said: str | None
) -> None:
    jobs, pod = a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", "x"), a_pod("x").running(*command).asking()
    found = assigned(pod, jobs)
    assert tier_of(found) == "gpu-training"
    assert [*words(type_warnings(a_tier_request(pod, jobs), found))] == ([said] if said else [])


def test_a_proof_that_leads_to_the_top_is_no_guess() -> None:
    trains = a_pytorchjob()
    pod = a_pod("x").asking()
    assert list(type_warnings(a_tier_request(pod, trains), assigned(pod, trains))) == []
