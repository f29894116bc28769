"""A settled decision stays settled, whatever a pod asks for."""

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    PodBuilder,
    WorkloadBuilder,
    a_job,
    a_notebook,
    a_pod,
    a_policy,
    a_pytorchjob,
    a_tenant,
    assigned,
)
from tests.builders.words import deciding_line
from webhook.objects.refusal import Refused
from webhook.policy.assignment.assigned_by import ASSIGNED_BY
from webhook.policy.assignment.request import Assignment
from webhook.policy.values.tiers import active_class

TIER_NAMES = ["gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive"]

OWNERS: list[WorkloadBuilder | None] = [
    None,
    a_job(name="night"),
    a_pytorchjob(name="train"),
    a_notebook(),
    a_job(name="labelled").of_tier("gpu-batch"),
]

CEILINGS: list[dict[str, object] | None] = [
    None,
    {},
    {"maxTier": "gpu-serving"},
    {"allowedTiers": ["gpu-training", "gpu-interactive"], "onExceed": "Demote"},
    {"defaultTier": "gpu-batch", "onExceed": "Demote"},
]

ANNOTATIONS = (
    st.none()
    | st.text(max_size=40)
    | st.sampled_from(
        [
            *(
                f"{step}: the policy's default; demoted from {tier} to gpu-interactive"
                for step in ("label", "class")
                for tier in TIER_NAMES
            ),
            "policy-default: the policy's default",
            "workload-type: training, by its kind, PyTorchJob/train; demoted from gpu-training to gpu-batch",
        ]
    )
)


@given(
    label=st.sampled_from([None, *TIER_NAMES, "gold"]),
    class_name=st.sampled_from([None, *TIER_NAMES, "house", "system-node-critical"]),
    owner=st.sampled_from(OWNERS),
    ceiling=st.sampled_from(CEILINGS),
    annotation=ANNOTATIONS,
    unmanaged=st.sampled_from(["Keep", "Replace", "Deny"]),
    adoption=st.booleans(),
)
def test_settling_again_after_our_own_marks_settles_the_same(
    label: str | None,
    class_name: str | None,
    owner: WorkloadBuilder | None,
    ceiling: dict[str, object] | None,
    annotation: str | None,
    unmanaged: str,
    adoption: bool,
) -> None:
    policy = a_policy(unmanagedClasses=unmanaged, adoption=adoption)
    owners, tenant = (owner,) if owner else (), None if ceiling is None else a_tenant(**ceiling)

    def settled(pod: PodBuilder) -> Assignment:
        return assigned(pod, *owners, policy=policy, tenant=tenant)

    pod = a_pod().asking()
    pod = pod if label is None else pod.of_tier(label)
    pod = pod if class_name is None else pod.of_class(class_name)
    pod = pod if annotation is None else pod.annotated({ASSIGNED_BY: annotation})
    try:
        first = settled(pod)
    except Refused:
        return
    marked = pod.annotated({ASSIGNED_BY: deciding_line(first)})
    if first.tier is not None:
        marked = marked if label else marked.of_tier(first.tier.name)
        marked = marked.of_class(active_class(first.tier, adoption=adoption))
    second = settled(marked)
    assert (second.tier, deciding_line(second)) == (first.tier, deciding_line(first))
    if first.tier is not None and tenant is not None:
        assert tenant.view().may_use(first.tier, policy.tiers)
