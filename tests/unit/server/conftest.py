"""These tests run in the loop that the product runs in."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def as_before() -> Iterator[None]:
    """Undo what a test set up of logging."""
    root = logging.getLogger()
    handlers = list(root.handlers)
    levels = {each: each.level for each in (root, logging.getLogger("webhook"), logging.getLogger("certs"))}
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    for each, level in levels.items():
        each.setLevel(level)
