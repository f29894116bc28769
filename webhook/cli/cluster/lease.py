"""Finds out which replica leads, by the Lease that it renews."""

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from webhook.cli.command import warn
from webhook.config.errors import ConfigError
from webhook.kube.client import Client, path
from webhook.kube.errors import Forbidden, NotFound

LEASES = "coordination.k8s.io/v1"
LOOK_AGAIN = 0.5
"""Seconds between two reads of the Lease. A leader renews it every 2 s by default, and at most once a second."""


async def leader_of(client: Client, namespace: str, name: str) -> str:
    """Return the replica that renews the Lease; "" if none does until the Lease would have expired. Raises ApiError."""
    place = path(LEASES, "leases", namespace, name)
    with suppress(NotFound):
        first = (await client.get(place)).get("spec") or {}
        deadline = time.monotonic() + (first.get("leaseDurationSeconds") or 0)
        while first.get("holderIdentity") and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_AGAIN)
            now = (await client.get(place)).get("spec") or {}
            if now != first and now.get("holderIdentity"):
                return str(now["holderIdentity"]).rpartition("_")[0]
    return ""


async def led_until(client: Client, namespace: str, name: str) -> str | None:
    """Return when the last leader renewed the Lease, "" if unknown; None if a replica leads. Raises ApiError.

    A Lease that looks old is watched, because the clock of this machine may be ahead.
    """
    try:
        spec = (await client.get(path(LEASES, "leases", namespace, name))).get("spec") or {}
    except NotFound:
        return ""
    renewed = str(spec.get("renewTime") or "")
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(renewed)
    except (ValueError, TypeError):  # nobody has led yet
        return ""
    if spec.get("holderIdentity") and age < timedelta(seconds=spec.get("leaseDurationSeconds") or 0):
        return None
    return None if await leader_of(client, namespace, name) else renewed


async def warn_if_nobody_leads(client: Client, meanwhile: str) -> None:
    """Warn the user if no replica leads, and what that means for the answer (`meanwhile`).

    It does nothing for a user who may not read the Lease or the ConfigMaps, or without exactly one installation.
    """
    from webhook.cli.cluster.installed import installed_policy  # noqa: PLC0415 - imports what reads a policy

    try:
        led = await led_until(client, *(await installed_policy(client)).where.split("/"))
    except (Forbidden, ConfigError):
        return
    if led is not None:
        warn(f"no replica leads{f' since {led}' if led else ''}: {meanwhile}")
