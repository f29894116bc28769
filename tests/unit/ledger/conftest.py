"""What the stories of the ledger in memory have in common."""

import pytest

from tests.unit.clock import Clock


@pytest.fixture
def clock() -> Clock:
    """The ledger's."""
    return Clock()
