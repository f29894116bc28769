"""Objects of many parts: the work is bounded by their number, GPUs are counted in all of them, the rest is refused."""

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.builders import Tree, a_deployment, a_pod, a_tenant
from tests.builders.words import sentence
from tests.builders.world import FakeApi
from webhook.admission import review
from webhook.admission.review import TOO_LARGE

MOST_CALLS = 110_000
"""Of functions, by both webhooks together: two for each of 50,000 parts, some 20 ms."""

ALPHA = a_tenant().allowing(100)


def a_crowd(count: int, **fields: object) -> list[Tree]:
    return [{"name": f"c{n}", "image": f"org/x{n}", "command": [f"python train{n}.py"], **fields} for n in range(count)]


def with_crowd(count: int, **fields: object) -> Tree:
    pod: Tree = a_pod().asking().sent()
    pod["spec"]["containers"] += a_crowd(count - 1, **fields)
    return pod


SHAPES: dict[str, Callable[[Tree, Tree], object]] = {
    "containers": lambda pod, _: pod["spec"]["containers"].extend(a_crowd(499)),
    "init containers": lambda pod, _: pod["spec"].update(initContainers=a_crowd(499)),
    "too many containers": lambda pod, _: pod["spec"]["containers"].extend(a_crowd(9_000)),
    "the first attack": lambda pod, _: pod["spec"]["containers"].extend(a_crowd(150_000)),
    "arguments": lambda _, c: c.update(args=["a"] * 49_000),
    "variables": lambda _, c: c.update(env=[{"name": f"A{n}", "value": ""} for n in range(12_000)]),
    "sources of variables": lambda _, c: c.update(envFrom=[{"secretRef": {"name": "s"}}] * 16_000),
    "ports": lambda _, c: c.update(ports=[{"containerPort": n} for n in range(24_000)]),
    "volumes": lambda pod, c: (
        pod["spec"].update(volumes=[{"name": f"v{n}", "emptyDir": {}} for n in range(6_000)]),
        c.update(volumeMounts=[{"name": f"v{n}", "mountPath": f"/checkpoints{n}"} for n in range(6_000)]),
    ),
    "resources": lambda _, c: c["resources"]["limits"].update({f"x/gpu{n}": "1" for n in range(48_000)}),
    "labels": lambda pod, _: pod["metadata"].update(labels={f"gpu-tiers.dev/{n}": "" for n in range(48_000)}),
    "annotations": lambda pod, _: pod["metadata"].update(annotations={f"gpu-tiers.dev/{n}": "" for n in range(48_000)}),
    "owners": lambda pod, _: pod["metadata"].update(ownerReferences=[{"kind": "X", "uid": "u"}] * 16_000),
    "claims": lambda pod, _: pod["spec"].update(resourceClaims=[{"name": "c", "resourceClaimName": "c"}] * 16_000),
    "tolerations": lambda pod, _: pod["spec"].update(tolerations=[{"key": "k", "operator": "Exists"}] * 16_000),
    "null members": lambda _, c: c.update(env=[{"name": "A", "value": None}] * 16_000),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
async def test_the_work_on_a_large_object_is_bounded(shape: Callable[[Tree, Tree], object]) -> None:
    pod: Tree = a_pod().asking().sent()
    shape(pod, pod["spec"]["containers"][0])
    deployment = a_deployment(a_pod().asking()).json()
    deployment["spec"]["template"] = {"metadata": pod["metadata"], "spec": pod["spec"]}
    for each in (pod, deployment):
        assert await calls_of(FakeApi(ALPHA), each) < MOST_CALLS


async def calls_of(world: FakeApi, tree: Tree) -> int:
    """Return how many functions of Python are called to answer both webhooks."""
    requests = [review.decode(world.body(tree)) for _ in range(2)]
    calls = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        await world.webhooks.mutate(requests[0])
        await world.webhooks.validate(requests[1])
    finally:
        sys.setprofile(None)
    return calls


REFUSED = {
    "parts": (with_crowd(12_000), sentence(TOO_LARGE)),
    "bytes": (with_crowd(2, args=["x" * (10 << 20)]), sentence(TOO_LARGE)),
    "containers": (with_crowd(501), "501 containers; gpu-tiers counts GPUs in 500 at most"),
    "resources": (
        with_crowd(2, resources={"limits": {f"x/r{n}": 1 for n in range(40)}}),
        "resources; gpu-tiers counts GPUs in 32 at most",
    ),
    "claims": (
        a_pod().having("spec.resourceClaims", [{"name": f"c{n}"} for n in range(101)]).sent(),
        "101 resourceClaims; gpu-tiers counts GPUs in 100 at most",
    ),
}


@pytest.mark.parametrize(("pod", "message"), REFUSED.values(), ids=REFUSED)
async def test_what_is_too_large_is_left_as_it_is_and_then_refused_with_a_sentence(pod: Tree, message: str) -> None:
    world = FakeApi(ALPHA)
    assert (await world.mutate(pod)).patch == []
    assert (await world.validate(world.stored(pod))).sentence.endswith(message)


async def test_gpus_are_counted_in_all_containers_and_the_type_follows_from_the_first() -> None:
    world = FakeApi(ALPHA)
    crowd = with_crowd(400, resources={"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}})
    refused = await world.validate(world.stored((await world.mutate(crowd)).patched))
    assert "asks for 400" in refused.sentence

    sleeping = with_crowd(65)
    for container in sleeping["spec"]["containers"][:64]:
        container |= {"image": "busybox", "command": ["true"], "name": container["name"]}
    answer = await world.validate(world.stored((await world.mutate(sleeping)).patched))
    assert any(each.startswith("[many-containers] ") for each in answer.warnings)


async def test_managed_fields_and_a_large_status_count_for_nothing() -> None:
    world, deployment = FakeApi(ALPHA), a_deployment(a_pod().asking()).json()
    many = {f"f:{n}": {} for n in range(40_000)}
    deployment["status"] = many
    deployment["metadata"]["managedFields"] = [{"fieldsV1": many}]

    assert (await world.validate(deployment)).allowed


async def test_an_update_of_what_was_too_large_before_goes_on_with_a_warning() -> None:
    world, small = FakeApi(ALPHA), a_deployment(a_pod().asking()).json()
    large = json.loads(json.dumps(small))
    large["spec"]["template"]["spec"]["containers"] += a_crowd(12_000)

    assert (await world.update(large, large)).warnings == [sentence(TOO_LARGE)]
    assert (await world.update(large, small)).allowed
    assert (await world.update(small, large)).sentence == sentence(TOO_LARGE)
