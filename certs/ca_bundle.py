"""Keeps caBundle right in both webhook configurations, and reports whether they exist."""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from certs.make import utc_now
from certs.source import CertificateError, Json, JsonPatch, Objects, Outdated

log = logging.getLogger(__name__)

GROUP = "/apis/admissionregistration.k8s.io/v1"
KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
RETRY_SECONDS = 5.0


@dataclass(frozen=True)
class Seen:
    """A configuration as last seen, None if it is missing; `since` is when its bundle was first seen."""

    configuration: Json | None
    since: datetime
    webhooks: tuple[Json, ...] = field(init=False)

    def __post_init__(self) -> None:
        found = (self.configuration or {}).get("webhooks") or ()
        object.__setattr__(self, "webhooks", tuple(found))

    @property
    def registered(self) -> bool:
        """Tell whether the API server calls any webhook by this configuration."""
        return bool(self.webhooks)

    @property
    def bundles(self) -> frozenset[str]:
        """Return the distinct base64 caBundles of the entries; "" for an entry without."""
        return frozenset(_ca_bundle(webhook) for webhook in self.webhooks)


@dataclass(eq=False)
class WebhookConfigurations:
    """The Mutating- and the ValidatingWebhookConfiguration of one name.

    `wanted` returns the CA bundle (PEM) for every entry. Without it the configurations are only watched, because
    cert-manager's cainjector writes them. A `helm upgrade` may reset caBundle: a watch notices that at once, and
    everything is compared again every `every` seconds.
    """

    objects: Objects
    name: str
    wanted: Callable[[], Awaitable[bytes]] | None = None
    every: float = 60.0
    _seen: dict[str, Seen] = field(default_factory=dict)
    _one_check_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def seen(self) -> Mapping[str, Seen]:
        """Return the configurations as last seen, by kind (`KINDS`); a kind that was never read is absent."""
        return MappingProxyType(self._seen)

    @property
    def registered(self) -> bool:
        """Tell whether both configurations have webhooks. Without them, requests pass unseen."""
        return all(kind in self._seen and self._seen[kind].registered for kind in KINDS)

    def trusted_since(self, bundle: bytes) -> datetime | None:
        """Return since when every entry of both configurations has exactly this bundle; None while one does not.

        A missing configuration counts as having it, because nobody calls by it, and it gets the bundle when it returns.
        """
        encoded = frozenset({_encoded(bundle)})
        seen = [self._seen.get(kind) for kind in KINDS]
        times = [one.since for one in seen if one is not None and one.bundles <= encoded]
        return max(times) if len(times) == len(KINDS) else None

    async def check(self) -> None:
        """Compare both now, and write the differences. Raises CertificateError."""
        for kind in KINDS:
            await self._check(kind)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for kind in KINDS:
                group.create_task(self._keep(kind))

    async def _keep(self, kind: str) -> None:
        while True:
            try:
                version = await self._check(kind)
                await self.objects.changed(f"{GROUP}/{kind}", self.name, since=version, within=self.every)
            except CertificateError as error:
                log.warning(
                    "webhook configuration not checked", {"kind": kind, "name": self.name, "reason": str(error)}
                )
                await asyncio.sleep(min(self.every, RETRY_SECONDS))

    async def _check(self, kind: str) -> str | None:
        """Compare one, write the differences, and return its resourceVersion; None if it is missing."""
        async with self._one_check_at_a_time:
            found = await self.objects.get(f"{GROUP}/{kind}", self.name)
            if self.wanted is not None and found is not None:
                # The patch tests the resourceVersion, because entries have no key but their position in the list. The
                # wanted bundle is read after the configuration, so a replica that knows only the old CA can't overwrite
                # the bundle that another replica has just written.
                operations, about = corrections(found, _encoded(await self.wanted())), {"kind": kind, "name": self.name}
                try:
                    if operations:
                        found = await self.objects.patch(f"{GROUP}/{kind}", self.name, operations)
                        log.info("caBundle written", {**about, "entries": len(operations) - 1})
                except Outdated:
                    log.debug("webhook configuration changed meanwhile", about)
            self._note(kind, found)
        return None if found is None else str(found["metadata"]["resourceVersion"])

    def _note(self, kind: str, found: Json | None) -> None:
        before, after = self._seen.get(kind), Seen(found, utc_now())
        if before is not None and before.bundles == after.bundles:
            after = Seen(found, before.since)
        self._seen[kind] = after
        if before is None or before.registered != after.registered:
            about = {"kind": kind, "name": self.name}
            if after.registered:
                log.info("webhook registered", {**about, "entries": len(after.webhooks)})
            else:
                log.error("webhook not registered: requests pass unseen", about)


def corrections(configuration: Json, ca_bundle: str) -> JsonPatch:
    """Return the JSON patch that gives each entry this caBundle (base64); empty if all have it."""
    webhooks = configuration.get("webhooks") or ()
    operations: JsonPatch = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": ca_bundle}
        for index, webhook in enumerate(webhooks)
        if _ca_bundle(webhook) != ca_bundle
    ]
    version = configuration["metadata"]["resourceVersion"]
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
    return [test, *operations] if operations else []


def _ca_bundle(webhook: Json) -> str:
    return str(webhook.get("clientConfig", {}).get("caBundle") or "")


def _encoded(bundle: bytes) -> str:
    return base64.b64encode(bundle).decode()
