"""The time that torchrun is given for a save at SIGTERM."""

import pytest

from tests.builders import PodBuilder, a_pod, hook_decided
from webhook.policy.checkpoint.hook_plan import HookPlan

KIND = "gpu-tiers.dev/checkpoint"


def plan(pod: PodBuilder) -> HookPlan | None:
    return hook_decided(pod, None).plan


TORCHRUN: dict[str, tuple[dict[str, object], str | None]] = {
    "torchrun": ({"command": ["torchrun", "train.py"]}, "120"),
    "a path to it": ({"command": ["/opt/conda/bin/torchrun"]}, "120"),
    "its module": ({"command": ["python"], "args": ["-m", "torch.distributed.run", "train.py"]}, "120"),
    "accelerate": ({"command": ["sh", "-c", "exec accelerate launch train.py"]}, "120"),
    "the user's own value": (
        {"command": ["torchrun"], "env": [{"name": "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "value": "7"}]},
        None,
    ),
    "the user's own, from elsewhere": (
        {"command": ["torchrun"], "env": [{"name": "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "valueFrom": {}}]},
        None,
    ),
    "the user's option": ({"command": ["torchrun", "--shutdown-timeout=60", "train.py"]}, None),
    "a list that may hold it": ({"command": ["torchrun"], "envFrom": [{"configMapRef": {"name": "torch"}}]}, None),
    "another program": ({"command": ["python", "train.py"]}, None),
    "nothing that tells": ({}, None),
}


@pytest.mark.parametrize("name", TORCHRUN)
def test_torchrun_gets_the_time_that_a_save_at_sigterm_takes(name: str) -> None:
    container, value = TORCHRUN[name]
    found = plan(a_pod().asking(**container).annotated({KIND: "sigterm"}))
    assert found
    assert [each[2] for each in found.variables] == ([value] if value else [])


def test_torchrun_is_left_alone_where_its_30_seconds_do_or_no_save_waits_for_them() -> None:
    pod = a_pod().asking(command=["torchrun"])
    short = plan(pod.annotated({KIND: "sigterm", f"{KIND}-timeout": "20"}))
    saved_before = plan(pod.annotated({KIND: "file"}))
    assert short
    assert saved_before
    assert (short.variables, saved_before.variables) == ((), ())


def test_torchrun_may_use_a_longer_grace_that_is_there() -> None:
    pod = a_pod().asking(command=["torchrun"]).having("spec.terminationGracePeriodSeconds", 900)
    found = plan(pod.annotated({KIND: "sigterm"}))
    assert found
    assert found.variables == ((0, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "890"),)
