"""A reflector reads everything again when it is told to, however often that is."""

import asyncio

import msgspec
import pytest

from tests.ledger.simulated_api import PODS, SimulatedApi
from tests.ledger.simulated_client import SimulatedClient
from tests.ledger.virtual_time import in_virtual_time, pass_time
from webhook.kube.reflector import Reflector, Source


async def _whole(raw: msgspec.Raw) -> bytes:
    return bytes(raw)


async def _relisted_twice(turns: int) -> None:
    lists: list[int] = []
    client = SimulatedClient(SimulatedApi())
    reflector = Reflector(
        client,  # type: ignore[arg-type]
        Source(PODS, key="uid"),
        _whole,
        lambda *_: None,
        lambda found: lists.append(len(found)),
    )
    running = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    await pass_time(1)
    for _ in range(2):
        reflector.relist()
        for _ in range(turns):
            await asyncio.sleep(0)
    await pass_time(10)
    assert len(lists) >= 2
    assert not running.done()
    lists.clear()
    reflector.relist()
    await pass_time(10)
    assert len(lists) == 1, "it can be told again afterwards"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("turns", range(4))
def test_two_relists_at_once_are_one(turns: int) -> None:
    """Two DeviceClasses that change together tell it in neighbouring turns of the loop."""
    in_virtual_time(_relisted_twice)(turns)
