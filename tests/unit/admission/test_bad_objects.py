"""Objects that are none, within reviews that are: left alone by one webhook, refused by the other, never lost."""

import json
from time import process_time
from typing import Any

import pytest

from tests.builders import Built, Tree, a_deployment, a_job, a_pod, a_podgroup, a_policy, a_pytorchjob
from tests.builders.world import FakeApi
from webhook.admission.review import decode

SENT: Tree = FakeApi().sent(a_pod().asking())


def with_containers(containers: object) -> Tree:
    return {**SENT, "spec": {**SENT["spec"], "containers": containers}}


def with_metadata(**fields: object) -> Tree:
    return {**SENT, "metadata": {**SENT["metadata"], **fields}}


def asking(value: object) -> Tree:
    return a_pod().asking(value)


NO_QUANTITY = 'is not a quantity; write a whole number of GPUs, such as "2"'
NOT_WHOLE = 'is not a number of GPUs; write a whole one, such as "2"'
REQUESTS, LIMITS = (f"spec.containers[0].resources.{part}.nvidia.com/gpu" for part in ("requests", "limits"))

UNREADABLE: dict[str, tuple[Any, str]] = {
    "object null": (None, "object: expected a map, got null"),
    "object a list": ([], "object: expected a map, got a list"),
    "object a string": ("pod", "object: expected a map, got text"),
    "metadata a list": ({**SENT, "metadata": []}, "metadata: expected a map, got a list"),
    "spec a string": ({**SENT, "spec": "x"}, "spec: expected a map, got text"),
    "containers a string": (with_containers("many"), "spec.containers: expected a list, got text"),
    "containers of null": (with_containers([None]), "spec.containers[0]: expected a map, got null"),
    "container a number": (with_containers([*SENT["spec"]["containers"], 7]), "spec.containers[1]: expected a map"),
    "labels a list": (with_metadata(labels=[]), "metadata.labels: expected a map, got a list"),
    "label a number": (with_metadata(labels={"gpu-tiers.dev/tier": 7}), "metadata.labels[...]: expected text"),
    "owner null": (with_metadata(ownerReferences=[None]), "metadata.ownerReferences[0]: expected a map"),
    "priority a string": (
        a_pod().asking().having("spec.priority", "high"),
        "spec.priority: expected a whole number, got text",
    ),
    "claims a map": (
        a_pod().asking().having("spec.resourceClaims", {}),
        "spec.resourceClaims: expected a list, got a map",
    ),
    "quantity true": (
        asking(value=True),
        "spec.containers[0].resources.limits[...]: expected a whole number or a number or text",
    ),
    "quantity a list": (
        asking([]),
        "spec.containers[0].resources.limits[...]: expected a whole number or a number or text",
    ),
    "quantity negative": (asking("-1"), f'{REQUESTS}: "-1" {NOT_WHOLE}'),
    "quantity negative number": (asking(-1), f'{REQUESTS}: "-1" {NOT_WHOLE}'),
    "quantity of 400 digits": (asking("1e400"), f'{REQUESTS}: "1e400" {NO_QUANTITY}'),
    "quantity empty": (asking(""), f'{REQUESTS}: "" {NO_QUANTITY}'),
    "quantity half": (asking(1.5), f'{REQUESTS}: "1.5" {NOT_WHOLE}'),
    "quantity milli": (asking("500m"), f'{REQUESTS}: "500m" {NOT_WHOLE}'),
    "quantity words": (asking("eight" * 1000), f'{REQUESTS}: "{"eight" * 8}" {NO_QUANTITY}'),
    "label of 10,000": (
        with_metadata(labels={"gpu-tiers.dev/tier": "x" * 10_000}),
        f'metadata.labels[gpu-tiers.dev/tier]: unknown tier "{"x" * 63}…"; known tiers: gpu-training, ',
    ),
    "metadata null": ({**SENT, "metadata": None}, "metadata: absent; without it there is nothing to give"),
}


@pytest.mark.parametrize(("obj", "sentence"), UNREADABLE.values(), ids=UNREADABLE)
async def test_pods_that_are_none_are_left_alone_and_refused(obj: Any, sentence: str) -> None:
    world = FakeApi()
    mutated, validated = await world.mutate(obj), await world.validate(obj)
    assert mutated.allowed
    assert mutated.patch == []
    assert not validated.allowed
    assert validated.sentence.startswith(sentence)
    assert len(validated.sentence) < 260


@pytest.mark.parametrize(("obj", "sentence"), UNREADABLE.values(), ids=UNREADABLE)
async def test_in_audit_they_are_recorded(obj: Any, sentence: str) -> None:
    world = FakeApi(policy=a_policy(mode="Audit"))
    answer = await world.validate(obj)
    assert answer.allowed
    assert answer.audit["would-refuse"].startswith(sentence)
    assert world.records[-1][2].refusal is not None


RAW = {
    "a number too large": b'{"spec": {"priority": 1e400}}',
    "a quantity too large": b'{"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1e400}}}]}}',
    "a number of 5,000 digits": b'{"spec": {"priority": ' + b"9" * 5000 + b"}}",
    "not UTF-8": b'{"metadata": {"name": "\xff\xfe"}}',
    "nested to the limit": b'{"spec": {"affinity": ' + b'{"a":' * 900 + b"null" + b"}" * 900 + b', "containers": 3}}',
}


@pytest.mark.parametrize("obj", RAW.values(), ids=RAW)
async def test_objects_that_json_itself_can_not_say(obj: bytes) -> None:
    """They pass the envelope, where an object stays bytes; nobody must fall over them later."""
    world = FakeApi()
    body = FakeApi().body("OBJECT").replace(b'"OBJECT"', obj)
    for webhook, allowed in ((world.webhooks.mutate, True), (world.webhooks.validate, False)):
        response = json.loads(await webhook(decode(body)))["response"]
        assert response["allowed"] is allowed
        assert "patch" not in response


WORKLOADS = {
    "template a string": ({"template": "x"}, "spec.template: expected a map, got text"),
    "containers a string": (
        {"template": {"spec": {"containers": "x"}}},
        "spec.template.spec.containers: expected a list, got text",
    ),
    "half a GPU": (
        a_deployment(a_pod().asking("0.5")).json()["spec"],
        f'spec.template.{LIMITS}: "0.5" {NOT_WHOLE}',
    ),
    "less than none": (
        a_deployment(a_pod().asking(-4)).json()["spec"],
        f'spec.template.{LIMITS}: "-4" {NOT_WHOLE}',
    ),
    "replicas negative": (
        a_deployment(replicas=-1).json()["spec"],
        'spec.replicas: "-1" is not a count of pods',
    ),
    "replicas endless": (
        a_deployment(replicas=10**12).json()["spec"],
        'spec.replicas: "1000000000000" is not a count',
    ),
    "replicas a word": (
        {**a_deployment().json()["spec"], "replicas": "w" * 999},
        f'spec.replicas: "{"w" * 40}" is not a count',
    ),
}


@pytest.mark.parametrize(("spec", "sentence"), WORKLOADS.values(), ids=WORKLOADS)
async def test_workloads_that_are_none(spec: Tree, sentence: str) -> None:
    answer = await FakeApi().validate({**a_deployment().json(), "spec": spec})
    assert not answer.allowed
    assert answer.sentence.startswith(sentence)
    assert len(answer.sentence) < 200


@pytest.mark.parametrize("obj", [None, [], "x", 7])
@pytest.mark.parametrize("kind", [a_deployment(), a_pytorchjob(), a_podgroup()], ids=lambda each: each.tree["kind"])
async def test_workloads_and_groups_of_no_shape(kind: Built, obj: object) -> None:
    world = FakeApi()
    answer = await world.validate(kind, object=obj)
    assert not answer.allowed
    assert answer.sentence.startswith("object: ")


async def test_a_pod_whose_containers_are_null_asks_for_nothing() -> None:
    assert (await FakeApi().validate(with_containers(None))).allowed


async def test_gpus_of_an_init_container_beside_no_container_are_seen() -> None:
    pod = a_pod().having("spec.containers", None).with_init("4")
    assert not (await FakeApi().validate(FakeApi().stored(pod))).allowed


async def test_a_refusal_holds_nothing_that_a_terminal_obeys() -> None:
    answer = await FakeApi().create(a_pod().asking().of_tier("\x1b[2Jgone\x07\n"))
    assert answer.sentence.isprintable()


async def test_an_update_without_an_old_object() -> None:
    world = FakeApi()
    answer = await world.validate(a_pod().asking(), operation="UPDATE")
    assert answer.sentence == "object: expected a map, got null"


@pytest.mark.parametrize("claims", [[{}], [{"name": "x"}], [{"resourceClaimName": ""}]])
async def test_claims_that_name_nothing(claims: list[Tree]) -> None:
    answer = await FakeApi().validate(a_pod().running().having("spec.resourceClaims", claims))
    assert "names no claim; write resourceClaimTemplateName or resourceClaimName" in answer.sentence


@pytest.mark.parametrize("name", ["", "y" * 9000])
async def test_groups_that_name_nothing_or_too_much(name: str) -> None:
    answer = await FakeApi().validate(a_pod().asking().in_group(name))
    assert not answer.allowed
    assert len(answer.sentence) < 200


@pytest.mark.parametrize("image", ["", ":", "/", "@sha256:x"])
async def test_images_that_name_nothing_tell_nothing(image: str) -> None:
    """The API server refuses none of them; the kubelet does."""
    pod, owner = a_pod().asking(image=image), a_pytorchjob()
    unknown = await FakeApi().create(pod)
    assert unknown.audit["tier"] == (await FakeApi().validate(a_deployment(pod))).audit["tier"] == "gpu-interactive"
    assert unknown.warnings[0].startswith("[type-unknown] ")
    assert (await FakeApi(owner).create(pod.owned_by(owner))).audit["tier"] == "gpu-training"


LONG_COMMANDS = {
    "one word": ["x" * 100_000],
    "words": ["torchrun", "train.py", *["--x"] * 30_000],
    "a script of nothing": ["sh", "-c", "\n" * 100_000],
    "a script of folders": ["sh", "-c", "a/" * 50_000],
    "a script that never begins": ["sh", "-c", "exec " * 20_000],
}


@pytest.mark.parametrize("command", LONG_COMMANDS.values(), ids=LONG_COMMANDS)
async def test_a_command_of_100_kb_is_answered_at_once_and_not_repeated(command: list[str]) -> None:
    pod, begun = a_pod().asking(command=command), process_time()
    answers = [
        await FakeApi().create(pod),
        await FakeApi().validate(a_job(pod)),
        await FakeApi().validate(a_pytorchjob(pod)),
    ]
    assert process_time() - begun < 5
    for answer in answers:
        assert answer.allowed
        assert len(answer.audit["assigned-by"]) < 100
        assert all(len(warning) <= 120 for warning in answer.warnings)
