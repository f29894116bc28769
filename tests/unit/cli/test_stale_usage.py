"""`gpu-tiers usage` while no replica leads: the numbers are those of the last leader."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from webhook.cli.cluster import lease as reading
from webhook.cli.cluster.lease import led_until, warn_if_nobody_leads
from webhook.kube.client import RFC_3339, Page
from webhook.kube.errors import NotFound

LONG_AGO = "2026-11-21T09:00:00Z"


class Leases:
    """An API server with these states of the Lease, one at each read, the last one for good."""

    def __init__(self, *specs: dict[str, Any]) -> None:
        self._specs = [*specs]

    async def get(self, place: str) -> dict[str, Any]:
        if not self._specs:
            raise NotFound(place, 404)
        return {"spec": self._specs.pop(0) if len(self._specs) > 1 else self._specs[0]}


def lease(renewed: str, holder: str = "gpu-tiers-7f_1") -> dict[str, Any]:
    return {"holderIdentity": holder, "leaseDurationSeconds": 1, "renewTime": renewed}


@pytest.mark.parametrize(
    ("leases", "until"),
    [
        (Leases(lease((datetime.now(UTC) + timedelta(days=1)).strftime(RFC_3339))), None),
        (Leases(lease(LONG_AGO), lease(LONG_AGO), lease("2026-11-21T09:00:01Z")), None),
        (Leases(lease(LONG_AGO)), LONG_AGO),
        (Leases(lease(LONG_AGO, holder="")), LONG_AGO),
        (Leases(), ""),
    ],
    ids=["renewed", "renewed while it is watched, by a clock that differs", "expired", "given up", "no Lease"],
)
async def test_who_leads_is_read_from_the_lease(
    leases: Leases, until: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LOOK_AGAIN", 0.01)
    assert await led_until(leases, "gpu-tiers", "gpu-tiers") == until  # type: ignore[arg-type]


class Installed(Leases):
    """One with a policy file too, in the namespace of the Lease."""

    async def list_pages(self, place: str, params: object) -> AsyncIterator[Page]:
        del place, params
        metadata = {"namespace": "gpu-tiers", "name": "gpu-tiers"}
        yield Page(items=[msgspec.Raw(msgspec.json.encode({"metadata": metadata, "data": {"policy.yaml": ""}}))])


async def test_the_user_is_warned_of_old_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LOOK_AGAIN", 0.01)
    await warn_if_nobody_leads(Installed(lease(LONG_AGO)), "the numbers are as of the last leader")  # type: ignore[arg-type]
    assert f"no replica leads since {LONG_AGO}: the numbers are as of the last leader" in capsys.readouterr().err
    await warn_if_nobody_leads(
        Installed(lease(LONG_AGO), lease(LONG_AGO), lease("2026-11-21T09:00:01Z")),
        "the numbers are as of the last leader",
    )  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
