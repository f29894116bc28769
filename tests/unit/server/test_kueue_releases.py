"""By which updates Kueue lets run what it admitted."""

import pytest

from tests.builders import a_job, a_pod, a_pytorchjob
from tests.builders.built import Built
from tests.builders.world import World
from webhook.admission import review
from webhook.server.kueue_releases import releases

GATES = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/later"}]


@pytest.mark.parametrize(
    ("before", "after", "is_one"),
    [
        (a_job().having("spec.suspend", True), a_job().having("spec.suspend", False), True),
        (a_pytorchjob().having("spec.runPolicy.suspend", True), a_pytorchjob(), True),
        (a_job(), a_job().having("spec.suspend", True), False),
        (a_job(), a_job().having("spec.parallelism", 9), False),
        (a_pod().having("spec.schedulingGates", GATES), a_pod().having("spec.schedulingGates", GATES[1:]), True),
        (a_pod().having("spec.schedulingGates", GATES[1:]), a_pod(), False),
    ],
    ids=["Job", "PyTorchJob", "suspended", "scaled", "gate lifted", "another's gate lifted"],
)
def test_a_release(before: Built, after: Built, *, is_one: bool) -> None:
    world = World()
    body = world.body(after, operation="UPDATE", oldObject=world.sent(before))
    assert releases(review.decode(body)) is is_one


def test_a_create_is_none() -> None:
    assert not releases(review.decode(World().body(a_job())))
