"""The stories tell of each write: a leader that waits for more to write is another story."""

import pytest

from webhook.ledger.leader import counting


@pytest.fixture(autouse=True)
def written_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader writes at once what it could put off; the machine lets it put off."""
    if not request.module.__name__.endswith("test_machine"):
        monkeypatch.setattr(counting, "SETTLE_SECONDS", 0.0)
