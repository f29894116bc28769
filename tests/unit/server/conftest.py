"""These tests run in the loop that the product runs in."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping

import pytest
import structlog
import uvloop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def lines() -> Iterator[list[Mapping[str, object]]]:
    """The log, one mapping a line."""
    with structlog.testing.capture_logs() as captured:
        yield captured


@pytest.fixture
def as_before() -> Iterator[None]:
    """Undo what a test set up of logging."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
