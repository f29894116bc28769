"""The refusals: one line with the field, the value, and what is accepted."""

from collections.abc import Callable

import pytest

from tests.builders import PodBuilder, TenantBuilder, a_job, a_notebook, a_pod, a_policy, a_tenant, a_tier_request
from tests.builders.operators import an_mpijob
from tests.builders.words import told
from webhook.objects.refusal import Refused
from webhook.policy.assignment.request import TierRequest
from webhook.policy.decide import assignment_of

LABEL = "metadata.labels[gpu-tiers.dev/tier]"
TIERS = "gpu-training, gpu-serving, gpu-batch, gpu-interactive"
NOTEBOOK = a_notebook()


def pod() -> PodBuilder:
    return a_pod().asking()


def beta(**spec: object) -> TenantBuilder:
    return a_tenant("beta", **spec)


REFUSED: dict[str, tuple[Callable[[], TierRequest], str]] = {
    "a label that names no tier": (
        lambda: a_tier_request(pod().of_tier("gpu-trainign")),
        f'{LABEL}: unknown tier "gpu-trainign"; known tiers: {TIERS}',
    ),
    "a label that names no tier, where the tenant may not use all": (
        lambda: a_tier_request(pod().of_tier("gold"), tenant=beta(maxTier="gpu-batch")),
        f'{LABEL}: unknown tier "gold"; tenant beta may use gpu-batch, gpu-interactive',
    ),
    "an empty label": (
        lambda: a_tier_request(pod().of_tier("")),
        f'{LABEL}: unknown tier ""; known tiers: {TIERS}',
    ),
    "a label of ten thousand characters": (
        lambda: a_tier_request(pod().of_tier("x" * 10_000)),
        f'{LABEL}: unknown tier "{"x" * 63}…"; known tiers: {TIERS}',
    ),
    "an owner's label that names no tier": (
        lambda: a_tier_request(pod(), a_job(name="night").of_tier("gold")),
        f'Job/night.{LABEL}: unknown tier "gold"; known tiers: {TIERS}',
    ),
    "a label against a class": (
        lambda: a_tier_request(pod().of_tier("gpu-batch").of_class("gpu-training")),
        (
            f"{LABEL}: gpu-batch contradicts spec.priorityClassName: gpu-training; "
            "write one of the two, or the same in both"
        ),
    ),
    "an owner's label against a class": (
        lambda: a_tier_request(pod().of_class("gpu-training"), a_job(name="night").of_tier("gpu-batch")),
        (
            f"Job/night.{LABEL}: gpu-batch contradicts spec.priorityClassName: gpu-training; "
            "write one of the two, or the same in both"
        ),
    ),
    "a label against a class outside the tiers": (
        lambda: a_tier_request(pod().of_tier("gpu-batch").of_class("house")),
        f"{LABEL}: gpu-batch contradicts spec.priorityClassName: house; write one of the two, or the same in both",
    ),
    "a label against the group": (
        lambda: a_tier_request(pod().of_tier("gpu-batch").in_group("gang"), group="gpu-training"),
        (
            f"{LABEL}: gpu-batch, but its PodGroup/gang is gpu-training; a group and its pods share one tier: "
            "write the group's tier, or leave the field out"
        ),
    ),
    "a class against the group": (
        lambda: a_tier_request(pod().of_class("gpu-batch").in_group("gang"), group="gpu-training"),
        (
            "spec.priorityClassName: gpu-batch, but its PodGroup/gang is gpu-training; a group and its pods share one "
            "tier: write the group's tier, or leave the field out"
        ),
    ),
    "a group without a tier": (
        lambda: a_tier_request(pod().in_group("gang"), group=""),
        (
            'spec.schedulingGroup: PodGroup/gang has no tier (priorityClassName ""); create it again with the label '
            f"gpu-tiers.dev/tier, whose value is one of {TIERS}"
        ),
    ),
    "a class that the policy denies": (
        lambda: a_tier_request(pod().of_class("house"), policy=a_policy(unmanagedClasses="Deny")),
        f"spec.priorityClassName: house is not a tier's class; write one of {TIERS}",
    ),
    "a label above the ceiling": (
        lambda: a_tier_request(pod().of_tier("gpu-training"), tenant=beta(maxTier="gpu-serving")),
        (
            f"{LABEL}: gpu-training is not for tenant beta; it may use gpu-serving, gpu-batch, gpu-interactive. "
            "See TenantQuota/beta."
        ),
    ),
    "a class above the ceiling": (
        lambda: a_tier_request(pod().of_class("gpu-training"), tenant=beta(allowedTiers=["gpu-batch"])),
        "spec.priorityClassName: gpu-training is not for tenant beta; it may use gpu-batch. See TenantQuota/beta.",
    ),
    "a group above the ceiling": (
        lambda: a_tier_request(pod().in_group("gang"), group="gpu-training", tenant=beta(maxTier="gpu-batch")),
        (
            "spec.schedulingGroup: gpu-training is not for tenant beta; it may use gpu-batch, gpu-interactive. "
            "See TenantQuota/beta."
        ),
    ),
    "a ceiling that names no tier": (
        lambda: a_tier_request(pod().of_tier("gpu-batch"), tenant=beta(maxTier="gold")),
        (
            f"{LABEL}: gpu-batch is not for tenant beta; the tenant may use none, because its maxTier (gold) names no "
            "tier of the policy; known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive. Ask your platform "
            "team to correct TenantQuota/beta"
        ),
    ),
    "tiers of which the policy has none": (
        lambda: a_tier_request(pod().of_tier("gpu-batch"), tenant=beta(allowedTiers=["gold", "silver"])),
        (
            f"{LABEL}: gpu-batch is not for tenant beta; the tenant may use none, because its allowedTiers (gold, "
            "silver) names no tier of the policy; known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive. "
            "Ask your platform team to correct TenantQuota/beta"
        ),
    ),
    "a kept class above the ceiling": (
        lambda: a_tier_request(pod().of_class("system-node-critical"), tenant=beta(maxTier="gpu-training")),
        (
            "spec.priorityClassName: system-node-critical (2000001000) is above the ceiling of tenant beta; "
            f"it may use {TIERS}. See TenantQuota/beta."
        ),
    ),
    "a kept class that nobody knows": (
        lambda: a_tier_request(pod().of_class("secret"), tenant=beta(maxTier="gpu-training")),
        "spec.priorityClassName: no PriorityClass is named secret",
    ),
    "a tier that is not for the workload type": (
        lambda: a_tier_request(pod().of_tier("gpu-training"), NOTEBOOK),
        (
            f"{LABEL}: gpu-training is not allowed for interactive workloads; this is one because of its kind, "
            "Notebook/workbench; it may use gpu-batch, gpu-interactive"
        ),
    ),
    "the same within a tenant's ceiling": (
        lambda: a_tier_request(pod().of_class("gpu-serving"), NOTEBOOK, tenant=beta(maxTier="gpu-interactive")),
        (
            "spec.priorityClassName: gpu-serving is not allowed for interactive workloads; this is one because of "
            "its kind, Notebook/workbench; it may use gpu-interactive"
        ),
    ),
    "the same through a group": (
        lambda: a_tier_request(pod().in_group("gang"), NOTEBOOK, group="gpu-training"),
        (
            "spec.schedulingGroup: gpu-training is not allowed for interactive workloads; this is one because of "
            "its kind, Notebook/workbench; it may use gpu-batch, gpu-interactive"
        ),
    ),
    "a namespace without a tenant": (
        lambda: a_tier_request(pod(), policy=a_policy(namespacesWithoutTenant="Deny")),
        (
            "namespace team-alpha belongs to no tenant: no TenantQuota's namespaceSelector selects it; "
            "ask your platform team to add the namespace to a tenant"
        ),
    ),
    "a label without GPUs and without a tenant": (
        lambda: a_tier_request(
            a_pod().running("sleep").of_tier("gpu-batch"), policy=a_policy(namespacesWithoutTenant="Deny")
        ),
        (
            "namespace team-alpha belongs to no tenant: no TenantQuota's namespaceSelector selects it; "
            f"remove {LABEL}, or ask your platform team to add the namespace to a tenant"
        ),
    ),
    "a launcher's gang without a tenant": (
        lambda: a_tier_request(a_pod().running("mpirun"), an_mpijob(), policy=a_policy(namespacesWithoutTenant="Deny")),
        (
            "namespace team-alpha belongs to no tenant: no TenantQuota's namespaceSelector selects it; "
            "ask your platform team to add the namespace to a tenant"
        ),
    ),
    "a tenant's default that is no tier": (
        lambda: a_tier_request(pod(), tenant=beta(defaultTier="gold")),
        f'TenantQuota/beta: spec.defaultTier: unknown tier "gold"; known tiers: {TIERS}',
    ),
    "a namespace's default that is no tier": (
        lambda: a_tier_request(pod(), labels={"gpu-tiers.dev/default-tier": "gold"}),
        f'Namespace/team-alpha: metadata.labels[gpu-tiers.dev/default-tier]: unknown tier "gold"; known tiers: {TIERS}',
    ),
    "nothing lower is left": (
        lambda: a_tier_request(pod(), tenant=beta(allowedTiers=["gpu-training"])),
        "gpu-interactive (the policy's default) is not for tenant beta; it may use gpu-training. See TenantQuota/beta.",
    ),
}


@pytest.mark.parametrize(("asked", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_is_one_line_that_says_what_to_do(asked: Callable[[], TierRequest], sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        assignment_of(asked())
    assert told(refused.value) == sentence
    assert "\n" not in sentence
