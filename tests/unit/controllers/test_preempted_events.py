"""The Preempted events are read only in the scheduler's form, because anybody may write others."""

import msgspec
import pytest

from webhook.controllers.evicted_pods import Preempted, preempted

BY_POD = "Preempted by pod 3c9f-1 on node node-1.example"


async def read(message: str = BY_POD, **victim: str) -> Preempted | None:
    about = {"kind": "Pod", "namespace": "team", "name": "train-0", "uid": "77aa-2", **victim}
    event = {"metadata": {"namespace": "team", "name": "e"}, "involvedObject": about, "message": message}
    return await preempted(msgspec.Raw(msgspec.json.encode(event)))


@pytest.mark.parametrize(
    ("message", "by"), [(BY_POD, "3c9f-1"), ("Preempted by podgroup 3c9f-1 on node node-1.example", "")]
)
async def test_what_the_scheduler_writes_is_read(message: str, by: str) -> None:
    found = await read(message)
    assert found is not None
    assert (found.victim.name, found.by, found.node) == ("train-0", by, "node-1.example")


LIES = {
    "more than a node": {"message": f"{BY_POD}: pay, or more will follow"},
    "a second line": {"message": f"{BY_POD}\nmore"},
    "a megabyte": {"message": f"Preempted by {'x' * 1_000_000} on node node-1"},
    "no eviction": {"message": f"{BY_POD} (in kube-scheduler memory)."},
    "another namespace": {"namespace": "others"},
    "another path": {"name": "../../secrets/x"},
    "no name": {"name": ""},
    "a long name": {"name": "x" * 254},
    "a long uid": {"uid": "x" * 64},
    "no uid": {"uid": ""},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=[*LIES])
async def test_what_it_would_not_write_is_as_if_it_were_not_there(lie: dict[str, str]) -> None:
    assert await read(**lie) is None
