"""A long wait says what it waits for."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)

PATIENCE = 10.0
"""Seconds after which a wait says what it waits for."""


async def patiently(what: str, done: Awaitable[None], problems: Callable[[], list[str]]) -> None:
    """Wait, and say now and then what for."""
    waiting = asyncio.ensure_future(done)
    while not (await asyncio.wait([waiting], timeout=PATIENCE))[0]:
        log.warning("still waiting", what=what, problems=problems())
    waiting.result()
