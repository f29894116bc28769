"""A gang and its pods get one answer: what is let in when it is applied is never refused when its pods come."""

from collections.abc import Iterator
from decimal import Decimal

import pytest

from tests.builders import Tree, WorkloadBuilder, a_pod, a_pytorchjob, a_tenant
from tests.builders.world import World
from tests.unit.policy.workloads.counted import GPUS
from webhook.objects.group_kind import GroupKind
from webhook.policy.workloads.kinds import BUILT_IN
from webhook.policy.workloads.templates import pod_templates


def row_of(tree: Tree):
    group = tree["apiVersion"].rpartition("/")[0]
    return BUILT_IN.by_kind[GroupKind(group, tree["kind"])]


def pods_of(gang: WorkloadBuilder) -> Iterator[Tree]:
    """The pods that its operator makes of its templates, as many as it can't do without."""
    tree = gang.json()
    for each in pod_templates(tree, row_of(tree)):
        for number in range(each.least):
            made = {"metadata": {}, **each.pod}
            metadata = {
                **made["metadata"],
                "name": f"{tree['metadata']['name']}-{each.path}-{number}",
                "namespace": "team-alpha",
                "ownerReferences": [gang.reference()],
            }
            yield {"apiVersion": "v1", "kind": "Pod", **made, "metadata": metadata}


def asked(pod: Tree) -> int:
    limits = (each.get("resources", {}) for each in pod["spec"].get("containers", []))
    return sum(int((each.get("limits") or each.get("requests") or {}).get("nvidia.com/gpu", 0)) for each in limits)


GANGS = {
    name: gang
    for name, (gang, gpus) in GPUS.items()
    if gpus > 1 and row_of(gang.json()).gang and sum(1 for pod in pods_of(gang) if asked(pod)) > 1
}


@pytest.mark.parametrize("gang", GANGS.values(), ids=GANGS.keys())
async def test_a_gang_that_was_let_in_gets_all_of_its_pods_and_no_other_gets_in(gang: WorkloadBuilder) -> None:
    pods = list(pods_of(gang))
    total = sum(map(asked, pods))
    tenant = a_tenant().allowing(str(total))
    world = World(tenant, gang)
    applied = await world.validate(gang)
    assert applied.allowed, applied.sentence
    booked = await world.create(a_pod().asking(1))
    assert f"the total is at {total} of {total} GPUs; this pod asks for 1." in booked.sentence
    for pod in pods:
        answer = await world.create(pod)
        assert answer.allowed, answer.sentence
    another = await world.create(a_pod().asking(1))
    assert f"the total is at {total} of {total} GPUs; this pod asks for 1." in another.sentence


def test_every_operators_gangs_are_among_them():
    tried = {row_of(gang.json()).group for gang in GANGS.values()}
    assert {row.group for row in BUILT_IN.rows if row.gang and row.templates} == tried | {"training.kubedl.io"}


async def test_the_refusal_names_the_whole() -> None:
    running = a_pytorchjob(a_pod().asking(5), name="running", workers=2)
    world = World(a_tenant().allowing("16", tier="gpu-training").allowing("32"))
    assert (await world.validate(running)).allowed
    refused = await world.validate(a_pytorchjob(a_pod().asking(8), name="llm-finetune", workers=2))
    assert refused.sentence.startswith(
        "PyTorchJob llm-finetune asks for 16 GPUs (2 x 8); tenant alpha has 6 of gpu-training free. "
        "Would fit: gpu-serving (22 free)"
    )


async def test_a_pod_alone_is_charged_by_itself() -> None:
    world = World(a_tenant().allowing("4"))
    assert (await world.validate(a_pytorchjob(a_pod().asking(4), name="one"))).allowed
    second = await world.validate(a_pytorchjob(a_pod().asking(4), name="two"))
    assert (second.allowed, second.warnings) == (True, []), "nothing is booked before a pod comes"


async def test_an_audit_books_nothing() -> None:
    world = World(a_tenant().allowing("4"))
    gang = a_pytorchjob(a_pod().asking(2), workers=2)
    for _ in range(2):
        assert (await world.validate(gang, dryRun=True)).allowed
    tenant = world.cluster.tenants()[0]
    assert sum(world.ledger.usage(tenant).values()) == Decimal(0)
