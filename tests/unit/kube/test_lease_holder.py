"""The reported leader: nobody, once the leader has not renewed its Lease for the duration of one."""

import asyncio
from typing import Any

import pytest

from tests.unit.clock import Clock
from webhook.kube.leader_election import LeaderElection, LeaseHolder

BEHIND = "2020-01-01T00:00:00.000000Z"
"""The leader's clock may be years behind ours."""


def spec(renewed: str = BEHIND, holder: str = "gpu-tiers-0_1a2b3c4d") -> dict[str, Any]:
    return {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": BEHIND, "renewTime": renewed}


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_who_renews_holds_it_whatever_its_clock_says(clock):
    holder = LeaseHolder(clock)
    for second in range(10):
        holder.see(spec(f"2020-01-01T00:00:{second:02}.000000Z"))
        clock.now += 10
        assert holder.name == "gpu-tiers-0_1a2b3c4d"


def test_nobody_holds_what_was_not_renewed_for_its_time_however_often_it_was_read(clock):
    holder = LeaseHolder(clock)
    holder.see(spec())
    clock.now += 14
    holder.see(spec())
    assert holder.name
    clock.now += 2
    assert holder.name == ""
    holder.see(spec("2020-01-01T00:01:00.000000Z"))
    assert holder.name, "it was only paused"


def test_a_leader_lives_while_it_renews_and_not_when_it_has_just_taken_the_lease(clock):
    holder = LeaseHolder(clock)
    holder.see(spec())
    assert not holder.is_renewed, "the first sight says nothing"
    holder.see(spec("2020-01-01T00:00:02.000000Z"))
    assert holder.is_renewed
    clock.now += 5
    assert holder.name, "it is dead, and holds the Lease for 10 s yet"
    assert not holder.is_renewed
    holder.see(spec("2020-01-01T00:00:20.000000Z", holder="gpu-tiers-1_5e6f7a8b"))
    assert not holder.is_renewed, "the next one has not counted yet"
    holder.see(spec("2020-01-01T00:00:22.000000Z", holder="gpu-tiers-1_5e6f7a8b"))
    assert holder.is_renewed


@pytest.mark.parametrize("given", [{}, {"holderIdentity": ""}, spec(holder="")], ids=["empty", "made", "given up"])
def test_nobody_holds_a_lease_that_is_given_up_or_was_never_acquired(clock, given):
    holder = LeaseHolder(clock)
    assert holder.name == ""
    holder.see(given)
    assert holder.name == ""


class OneLease:
    """A client for a Lease that nobody renews."""

    async def get(self, _path: str) -> dict[str, Any]:
        return {"metadata": {"name": "gpu-tiers"}, "spec": spec()}


async def test_a_replica_that_competes_forgets_a_leader_that_is_dead(clock):
    election = LeaderElection(OneLease(), "gpu-tiers/gpu-tiers", "gpu-tiers-1_5e6f7a8b", 15, clock)
    assert election.holder == ""
    competing = asyncio.create_task(election.run(lambda _: asyncio.sleep(0)))
    async with asyncio.timeout(60):
        while not election.holder:  # noqa: ASYNC110 - nothing tells that it was read
            await asyncio.sleep(0)
    clock.now += 16
    assert election.holder == ""
    competing.cancel()
    await asyncio.gather(competing, return_exceptions=True)
