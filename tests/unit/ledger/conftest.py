"""The common part of the stories of the ledger in memory."""

import pytest

from tests.unit.clock import Clock


@pytest.fixture
def clock() -> Clock:
    """The ledger's."""
    return Clock()
