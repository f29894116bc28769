"""The second pass: the pod bears our marks by now, and gets the same assignment again; a forged mark gains nothing."""

import pytest

from tests.builders import PodBuilder, a_job, a_notebook, a_pod, a_policy, a_pytorchjob, a_tenant, assigned
from tests.builders.words import deciding_line, told
from webhook.objects.refusal import Refused
from webhook.policy.assignment.assigned_by import ASSIGNED_BY
from webhook.policy.assignment.request import TIER_LABEL, Assignment
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import active_class

TRAINING = a_pytorchjob(name="finetune")
BATCH_JOB = a_job(name="night")
RULES = [{"match": {"namespaces": ["team-alpha"]}, "tier": "gpu-batch"}]


def marked(pod: PodBuilder, found: Assignment, policy: TierPolicy) -> PodBuilder:
    """The pod after our patch, as the API server shows it to us again."""
    pod = pod.annotated({ASSIGNED_BY: deciding_line(found)})
    if found.tier is None:
        return pod
    pod = pod if TIER_LABEL in pod.json()["metadata"].get("labels", {}) else pod.of_tier(found.tier.name)
    return pod.of_class(active_class(found.tier, adoption=policy.adoption))


FIRST_PASSES = {
    "label": (a_pod().of_tier("gpu-batch"), {}),
    "owner's label": (a_pod(), {"owner": BATCH_JOB.of_tier("gpu-serving")}),
    "rule": (a_pod(), {"rules": RULES}),
    "rule over a class": (a_pod().of_class("gpu-training"), {"rules": RULES}),
    "class": (a_pod().of_class("gpu-training"), {"owner": BATCH_JOB}),
    "type": (a_pod(), {"owner": TRAINING}),
    "type below the ceiling": (a_pod(), {"owner": TRAINING, "tenant": a_tenant(maxTier="gpu-serving")}),
    "tenant's default": (a_pod(), {"tenant": a_tenant(defaultTier="gpu-batch")}),
    "default": (a_pod(), {}),
    "group": (a_pod().in_group("gang"), {"group": "gpu-batch"}),
    "a kept class": (a_pod().of_class("house"), {}),
    "a replaced class": (a_pod().of_class("house"), {"owner": TRAINING, "unmanagedClasses": "Replace"}),
    "label and class": (a_pod().of_class("gpu-batch").of_tier("gpu-batch"), {}),
    "a guess": (a_pod().running("jupyter", name="second"), {"tenant": a_tenant(defaultTier="gpu-batch")}),
}


@pytest.mark.parametrize("adoption", [False, True])
@pytest.mark.parametrize(("pod", "given"), FIRST_PASSES.values(), ids=FIRST_PASSES)
def test_a_second_pass_says_the_same(pod: PodBuilder, given: dict[str, object], adoption: bool) -> None:
    fields = {key: given[key] for key in ("rules", "unmanagedClasses") if key in given}
    policy = a_policy(adoption=adoption, **fields)

    def found(shown: PodBuilder) -> Assignment:
        owners = (given["owner"],) if "owner" in given else ()
        return assigned(shown, *owners, policy=policy, tenant=given.get("tenant"), group=given.get("group"))  # type: ignore[arg-type]

    first = found(pod.asking())
    second = found(marked(pod.asking(), first, policy))
    assert (second.tier, deciding_line(second), bool(second.asked)) == (
        first.tier,
        deciding_line(first),
        bool(first.asked),
    )


@pytest.mark.parametrize(
    ("pod", "label"),
    [
        (a_pod(), "gpu-batch"),
        (a_pod().of_class("gpu-training"), "gpu-batch"),
        (a_pod().of_tier("gpu-training"), "gpu-training"),
        (a_pod().of_tier("gpu-training").of_class("gpu-training"), "gpu-training"),
    ],
)
def test_a_demotion_survives_the_second_pass(pod: PodBuilder, label: str) -> None:
    """The label of its author still says what was asked for, and ours says what it got."""
    tenant = a_tenant(onExceed="Demote")
    first = assigned(pod.asking(), TRAINING, tenant=tenant)
    line = f"{deciding_line(first)}; demoted from gpu-training to gpu-batch"
    shown = a_pod().asking().of_tier(label).of_class("gpu-batch").annotated({ASSIGNED_BY: line})
    second = assigned(shown, TRAINING, tenant=tenant)
    assert second.tier
    assert (second.tier.name, second.demoted_from) == ("gpu-batch", "gpu-training")
    assert deciding_line(second) == line
    assert second.warnings == ()


def test_a_demotion_without_the_lower_class_is_a_copy_of_an_earlier_pods() -> None:
    """Such a pod has room now, or is demoted again."""
    line = "label: the label on the pod says gpu-training; demoted from gpu-training to gpu-batch"
    copied = a_pod().asking().of_tier("gpu-training").annotated({ASSIGNED_BY: line})
    found = assigned(copied, tenant=a_tenant(onExceed="Demote"))
    assert (found.tier and found.tier.name, found.demoted_from) == ("gpu-training", None)


@pytest.mark.parametrize("line", ["", "label: the label on the pod says gpu-training"])
def test_a_label_that_contradicts_a_class_of_the_author_is_refused_by_name(line: str) -> None:
    pod = a_pod().asking().of_tier("gpu-training").of_class("gpu-batch").annotated({ASSIGNED_BY: line})
    with pytest.raises(Refused) as refused:
        assigned(pod, tenant=a_tenant(onExceed="Demote"))
    assert "gpu-training contradicts spec.priorityClassName: gpu-batch" in told(refused.value)


def test_a_pod_whose_controller_wants_no_label_is_known_again_without_one() -> None:
    owner = TRAINING.having("spec.selector", {"matchExpressions": [{"key": TIER_LABEL, "operator": "DoesNotExist"}]})
    first = assigned(a_pod().asking(), owner)
    shown = a_pod().asking().of_class("gpu-training").annotated({ASSIGNED_BY: deciding_line(first)})
    assert assigned(shown, owner).step == "workload-type"


def test_a_demotion_from_a_rule_s_tier_says_nothing_of_the_class_that_is_our_own() -> None:
    policy = a_policy(rules=[{"match": {"namespaces": ["team-alpha"]}, "tier": "gpu-training"}])
    line = "rule: rules[0] of the policy says gpu-training; demoted from gpu-training to gpu-batch"
    shown = a_pod().asking().of_tier("gpu-batch").of_class("gpu-batch").annotated({ASSIGNED_BY: line})
    found = assigned(shown, policy=policy, tenant=a_tenant(onExceed="Demote"))
    assert (deciding_line(found), found.warnings) == (line, ())


DEMOTED = "workload-type: training, by its kind, PyTorchJob/finetune; demoted from gpu-training to gpu-batch"


def test_a_demotion_is_believed_only_of_a_tenant_s_pod() -> None:
    """Also when the tenant demotes no more: a gang that was demoted stays at its tier."""
    shown = a_pod().asking().of_tier("gpu-batch").of_class("gpu-batch").annotated({ASSIGNED_BY: DEMOTED})
    assert assigned(shown, TRAINING, tenant=a_tenant(onExceed="Deny")).step == "workload-type"
    assert assigned(shown, TRAINING).step == "label"


def test_a_forged_demotion_opens_no_tier_that_the_tenant_may_not_use() -> None:
    tenant = a_tenant(onExceed="Demote", allowedTiers=["gpu-training"])
    shown = a_pod().asking().of_tier("gpu-batch").of_class("gpu-batch").annotated({ASSIGNED_BY: DEMOTED})
    with pytest.raises(Refused) as refused:
        assigned(shown, TRAINING, tenant=tenant)
    assert "gpu-batch is not for tenant alpha" in told(refused.value)


NOTEBOOK = a_notebook()
FORGERIES = (
    "label: the label on the pod says gpu-training",
    "class: priorityClassName is gpu-training",
    "rule: rules[0] of the policy says gpu-training",
    "workload-type: training, by its kind, PyTorchJob/finetune",
    "workload-type: interactive, by its kind, Notebook/workbench",
    "group: PodGroup/gang is gpu-training",
    "namespace-default: the default of tenant alpha",
    "policy-default: the policy's default",
    "policy-default: the policy's default; demoted from gpu-training",
    "policy-default: the policy's default; demoted from gpu-training to gpu-batch",
    "; demoted from gpu-training",
    "; demoted from ",
    "\n",
)


@pytest.mark.parametrize("forged", FORGERIES)
@pytest.mark.parametrize("pod", [a_pod().of_tier("gpu-training"), a_pod().of_class("gpu-training")])
def test_a_forged_annotation_gains_nothing(pod: PodBuilder, forged: str) -> None:
    with pytest.raises(Refused) as refused:
        assigned(pod.asking().annotated({ASSIGNED_BY: forged}), NOTEBOOK)
    assert "gpu-training is not allowed for interactive workloads" in told(refused.value)


@pytest.mark.parametrize("forged", FORGERIES)
def test_with_a_forged_annotation_alone_nothing_changes(forged: str) -> None:
    honest = assigned(a_pod().asking(), NOTEBOOK)
    assert assigned(a_pod().asking().annotated({ASSIGNED_BY: forged}), NOTEBOOK) == honest
