"""The limits: a request above them is refused (test_refusals), our own choice is lowered with a warning."""

import pytest

from tests.builders import a_notebook, a_pod, a_policy, a_pytorchjob, a_tenant, a_tier_request, a_workload, assigned
from tests.builders.words import deciding_line, told, words
from webhook.objects.refusal import Refused
from webhook.policy.assignment.limits import acceptable
from webhook.policy.values.tiers import PriorityClass

TRAINING = a_pytorchjob(name="finetune")


def test_a_tier_that_we_chose_is_lowered_to_the_ceiling_and_says_so() -> None:
    found = assigned(a_pod().asking(), TRAINING, tenant=a_tenant("beta", maxTier="gpu-serving"))
    assert found.tier
    assert found.tier.name == "gpu-serving"
    note = "lowered from gpu-training to gpu-serving: tenant beta may not use gpu-training"
    assert deciding_line(found) == f"workload-type: training, by its kind, PyTorchJob/finetune; {note}"
    assert words(found.trace)[-1] == f"ceiling: {note}"
    assert words(found.warnings) == (f"tier {note}",)


def test_it_is_lowered_to_the_next_tier_of_the_list() -> None:
    tenant = a_tenant(allowedTiers=["gpu-interactive", "gpu-batch"])
    found = assigned(a_pod().asking(), TRAINING, tenant=tenant)
    assert found.tier
    assert found.tier.name == "gpu-batch"


def test_it_is_lowered_to_the_next_tier_that_its_type_may_use_too() -> None:
    """The ceiling is gpu-serving, and the policy keeps training out of it."""
    policy = a_policy(allowedTiersByType={"training": ["gpu-training", "gpu-batch"]})
    found = assigned(a_pod().asking(), TRAINING, policy=policy, tenant=a_tenant("beta", maxTier="gpu-serving"))
    assert found.tier
    assert found.tier.name == "gpu-batch"
    assert words(found.warnings) == (
        "tier lowered from gpu-training to gpu-batch: tenant beta may not use gpu-training",
    )


def test_a_type_and_a_tenant_that_have_no_tier_in_common_are_both_named() -> None:
    policy = a_policy(allowedTiersByType={"training": ["gpu-training"]})
    with pytest.raises(Refused) as refused:
        assigned(a_pod().asking(), TRAINING, policy=policy, tenant=a_tenant("beta", maxTier="gpu-batch"))
    assert refused.value.refusal.id == "default-above-ceiling"
    assert told(refused.value).endswith(
        "is not for tenant beta; training workloads may use only gpu-training (allowedTiersByType), "
        "and the tenant only gpu-batch, gpu-interactive. See TenantQuota/beta."
    )


def test_a_tenant_without_a_ceiling_lowers_nothing() -> None:
    found = assigned(a_pod().asking(), TRAINING, tenant=a_tenant())
    assert found.tier
    assert (found.tier.name, found.warnings) == ("gpu-training", ())


@pytest.mark.parametrize("ceiling", ["gpu-training", None])
def test_a_class_outside_the_tiers_below_the_ceiling_stays(ceiling: str | None) -> None:
    tenant = a_tenant(maxTier=ceiling) if ceiling else a_tenant()
    found = assigned(a_pod().asking().of_class("house"), tenant=tenant)
    assert found.tier is None
    assert words(found.warnings) == (
        "priorityClassName house is not a tier's class and is kept; this pod gets no tier",
    )


def test_a_class_outside_the_tiers_may_be_replaced_with_a_warning() -> None:
    found = assigned(a_pod().asking().of_class("house"), TRAINING, policy=a_policy(unmanagedClasses="Replace"))
    assert found.tier
    assert found.tier.name == "gpu-training"
    assert words(found.warnings) == (
        "priorityClassName house is replaced by gpu-training (training, by its kind, PyTorchJob/finetune)",
    )


@pytest.mark.parametrize("unmanaged", ["Keep", "Replace", "Deny"])
def test_the_global_default_s_name_is_nobody_s_choice(unmanaged: str) -> None:
    """The API server writes it on every pod that names no class, before any webhook sees the pod."""
    found = assigned(
        a_pod().asking().of_class("standard"),
        TRAINING,
        policy=a_policy(unmanagedClasses=unmanaged),
        classes=[PriorityClass("standard", 0, global_default=True)],
    )
    assert (found.step, found.warnings) == ("workload-type", ())


def test_a_namespace_without_a_tenant_may_be_warned_about() -> None:
    found = assigned(a_pod().asking(), policy=a_policy(namespacesWithoutTenant="Warn"))
    assert words(found.warnings) == (
        "namespace team-alpha belongs to no tenant: no TenantQuota's namespaceSelector selects it",
    )


@pytest.mark.parametrize("answer", ["Warn", "Deny"])
def test_a_pod_that_holds_no_gpu_and_keeps_a_class_outside_the_tiers_needs_no_tenant(answer: str) -> None:
    pod = a_pod().running("sleep").of_class("house")
    found = assigned(pod, policy=a_policy(namespacesWithoutTenant=answer))
    assert words(found.warnings) == (
        "priorityClassName house is not a tier's class and is kept; this pod gets no tier",
    )


def test_the_usual_use_of_a_kind_forbids_nothing() -> None:
    """A RayCluster is mostly used for exploring; who trains on one may say so."""
    raycluster = a_workload("ray.io/v1", "RayCluster", "explore")
    found = assigned(a_pod().asking().of_tier("gpu-training"), raycluster)
    assert found.tier
    assert found.tier.name == "gpu-training"


def test_what_plainly_runs_bounds_as_proof_does() -> None:
    pod = a_pod().running("jupyter-lab").asking(name="second").of_tier("gpu-training")
    with pytest.raises(Refused) as refused:
        assigned(pod)
    assert told(refused.value) == (
        "metadata.labels[gpu-tiers.dev/tier]: gpu-training is not allowed for interactive workloads; this is one "
        'because of its command ("jupyter-lab"); it may use gpu-batch, gpu-interactive'
    )


def test_a_name_forbids_nothing() -> None:
    pod = a_pod("jupyter").asking(name="second").of_tier("gpu-training")
    assert assigned(pod).step == "label"


def test_a_rule_is_the_platform_team_s_word_and_no_claim() -> None:
    rules = [{"match": {"kinds": [{"group": "kubeflow.org", "kind": "Notebook"}]}, "tier": "gpu-training"}]
    notebook = a_notebook()
    assert assigned(a_pod().asking(), notebook, policy=a_policy(rules=rules)).step == "rule"


def test_what_may_be_named_is_bounded_by_type_and_tenant() -> None:
    notebook = a_notebook()
    tenant = a_tenant(allowedTiers=["gpu-training", "gpu-interactive"])
    assert [tier.name for tier in acceptable(a_tier_request(a_pod().asking(), notebook, tenant=tenant))] == [
        "gpu-interactive"
    ]
