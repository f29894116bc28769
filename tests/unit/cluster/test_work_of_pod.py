"""The pods with work to lose, by the pods alone, and since when."""

import msgspec
import pytest

from tests.builders import a_pod, a_policy
from tests.builders.pods import PodBuilder
from webhook.cluster.pod_informer import SeenPod, has_work_to_lose, seen_pod
from webhook.policy.assignment.assigned_by import ASSIGNED_BY
from webhook.policy.checkpoint.hook_kinds import file_handler

POLICY = a_policy()


def seen(pod: PodBuilder) -> SeenPod:
    return seen_pod(msgspec.json.encode(pod.json()))


def assigned(said: str) -> PodBuilder:
    return a_pod().asking(8, command=["./run.sh"]).annotated({ASSIGNED_BY: said})


@pytest.mark.parametrize(
    ("said", "loses"),
    [
        ("workload-type: training, the usual use of its kind, TrainJob/llm", True),
        ("workload-type: training, by its kind, PyTorchJob/llm; demoted from gpu-training", True),
        ("workload-type: batch, the usual use of its kind, Job/sweep", False),
        ("label: the label on the pod says gpu-training", False),
    ],
)
def test_what_mutate_wrote_tells_more_than_the_pod_shows(said: str, loses: bool) -> None:
    assert has_work_to_lose(seen(assigned(said)), POLICY) is loses


def test_a_pod_that_a_label_gave_its_tier_is_known_by_what_it_runs() -> None:
    trains = a_pod().asking(8, command=["torchrun", "train.py"]).annotated({ASSIGNED_BY: "label: of the pod"})
    assert has_work_to_lose(seen(trains), POLICY)
    serves = a_pod().asking(8, command=["vllm", "serve", "llama"])
    assert not has_work_to_lose(seen(serves), POLICY)


def test_a_pod_that_bears_our_hook_has_work_whatever_its_type() -> None:
    hooked = a_pod().asking(8, lifecycle={"preStop": file_handler("/run/gpu-tiers", 60)})
    assert has_work_to_lose(seen(hooked), POLICY)


def began(*states: object) -> float | None:
    return seen(a_pod().asking(8).having("status", {"containerStatuses": [{"state": each} for each in states]})).began


def test_it_works_since_the_first_of_its_containers_began() -> None:
    sidecar, main = ({"running": {"startedAt": f"2026-11-24T02:{minute}:00Z"}} for minute in ("05", "01"))
    assert began(sidecar, main, {"waiting": {"reason": "ContainerCreating"}}) == 1_795_485_660.0
    ended = {"terminated": {"startedAt": "2026-11-24T02:01:00Z", "finishedAt": "2026-11-24T02:30:00Z"}}
    assert began(ended) == 1_795_485_660.0, "of an evicted one too"
    assert began({"waiting": {"reason": "ImagePullBackOff"}}) is None
    assert began({"terminated": {"startedAt": None}}) is None
