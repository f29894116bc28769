"""The reported leader: nobody, once the leader has not renewed its Lease for the duration of one."""

import asyncio
import json
from typing import Any

import pytest

from tests.unit.clock import Clock
from webhook.kube.errors import failure
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


class GuardedLease(OneLease):
    """A Lease whose writes a webhook of somebody else refuses, from another port each time."""

    def __init__(self) -> None:
        self.refused, self._calls = "connection refused", 0

    async def get(self, _path: str) -> dict[str, Any]:
        return {"metadata": {"name": "gpu-tiers"}, "spec": {}}

    async def replace(self, path: str, lease: dict[str, Any]) -> dict[str, Any]:
        self._calls += 1
        if not self.refused:
            return lease
        said = f'failed calling webhook "lease.example.com": 127.0.0.1:{51000 + self._calls}: {self.refused}'
        raise failure("PUT", path, 500, json.dumps({"message": said}).encode())


async def test_the_log_says_once_why_no_replica_can_lead(caplog):
    """The alert GpuTiersNoLeader sends an engineer to the log of each replica."""
    client = GuardedLease()
    election = LeaderElection(client, "gpu-tiers/gpu-tiers", "gpu-tiers-1_5e6f7a8b", 15)

    async def try_to_lead() -> bool:
        await election.get("gpu-tiers", "gpu-tiers")
        return await election.update("gpu-tiers", "gpu-tiers", None)

    def warned() -> list[str]:
        return [each.args["error"].partition("51")[2] for each in caplog.records if each.msg == "lease not written"]

    assert not any([await try_to_lead() for _ in range(9)])
    assert warned() == ["001: connection refused"], "once, and not at each attempt"
    client.refused = "no such host"
    await try_to_lead()
    assert warned()[1:] == ["010: no such host"]
    client.refused = ""
    assert await try_to_lead()
    client.refused = "no such host"
    await try_to_lead()
    assert warned()[2:] == ["012: no such host"], "it began again"


class Contested(GuardedLease):
    async def replace(self, path: str, _lease: dict[str, Any]) -> dict[str, Any]:
        raise failure("PUT", path, 409, b'{"message": "the object has been modified"}')


async def test_a_replica_that_comes_second_warns_of_nothing(caplog):
    election = LeaderElection(Contested(), "gpu-tiers/gpu-tiers", "gpu-tiers-1_5e6f7a8b", 15)
    await election.get("gpu-tiers", "gpu-tiers")
    assert not await election.update("gpu-tiers", "gpu-tiers", None)
    assert not caplog.records
