"""Any JSON is a pod, or refused."""

from hypothesis import given

from tests.builders import a_policy, some_facts
from tests.property.anything import JSON, refusal_of
from webhook.objects.pods import Pod
from webhook.objects.view import view
from webhook.policy.checkpoint.hook_plan import plan_hook
from webhook.policy.quota.demand import demand_of
from webhook.policy.workloads.kind_table import WorkloadType


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
    plan_hook(pod, WorkloadType.TRAINING, some_facts(), policy)
