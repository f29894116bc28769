"""Any JSON is a pod, or refused."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import a_policy
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import view
from webhook.policy.checkpoint.hook_plan import plan_hook
from webhook.policy.quota.demand import demand_of
from webhook.policy.workloads.workload_types import WorkloadType

unhurried = settings(deadline=None)
"""A shared machine may take its time over one example."""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


def refusal_of(call: Callable[[], object]) -> str | None:
    """The sentence with which a call refuses; any other exception is a bug."""
    try:
        call()
    except Refused as refused:
        return refused.sentence
    return None


@unhurried
@given(JSON)
def test_any_json_is_a_pod_or_refused(tree: object) -> None:
    for shape in (
        tree,
        {"metadata": tree},
        {"spec": tree},
        {"spec": {"containers": tree}},
        {"spec": {"affinity": tree}},
    ):
        assert "\n" not in (refusal_of(lambda shape=shape: judged(shape)) or "")


def judged(tree: object) -> None:
    policy, pod = a_policy(), view(tree, Pod)
    assert demand_of(pod, (), policy) >= 0
    plan_hook(pod, WorkloadType.TRAINING, (), policy)
