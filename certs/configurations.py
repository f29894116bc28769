"""Keeps both webhook configurations as the API server needs them to call the webhook, and reports whether they exist.

Until a replica has written a path into an entry, the API server gets a 404 for it, and acts by failurePolicy.
"""

import asyncio
import base64
import logging
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from certs.make import utc_now
from certs.source import CertificateError, Json, JsonPatch, Objects, Outdated

log = logging.getLogger(__name__)

GROUP = "/apis/admissionregistration.k8s.io/v1"
ENDS = {"mutatingwebhookconfigurations": "/mutate", "validatingwebhookconfigurations": "/validate"}
"""The suffix of the paths in each kind of configuration."""
KINDS = tuple(ENDS)
SECRET = re.compile(r"/[0-9a-f]{32}/(mutate|validate)")
"""A path that a replica wrote. The chart's policy own-configurations lets it write no other."""
RETRY_SECONDS = 5.0


@dataclass(frozen=True)
class Seen:
    """A configuration as last seen, None if it is missing; `since` is when its bundle was first seen."""

    configuration: Json | None
    since: datetime
    webhooks: tuple[Json, ...] = field(init=False)
    paths: frozenset[str] = field(init=False)
    """The paths that the API server calls; "" for an entry whose path nobody answers."""

    def __post_init__(self) -> None:
        found = (self.configuration or {}).get("webhooks") or ()
        object.__setattr__(self, "webhooks", tuple(found))
        object.__setattr__(self, "paths", frozenset(map(_path, found)))

    @property
    def registered(self) -> bool:
        """True if the API server calls a path that the webhook answers, in every entry."""
        return bool(self.webhooks) and "" not in self.paths

    @property
    def bundles(self) -> frozenset[str]:
        """Return the distinct base64 caBundles of the entries; "" for an entry without."""
        return frozenset(_ca_bundle(webhook) for webhook in self.webhooks)


@dataclass(eq=False)
class WebhookConfigurations:
    """The Mutating- and the ValidatingWebhookConfiguration of one name.

    `wanted` returns the CA bundle (PEM) for every entry. Without it somebody else writes caBundle, such as
    cert-manager's cainjector. An entry that calls the Service without a secret path gets that of the other entries, or
    a new one. Nothing else stores the path. A `helm upgrade` may reset both fields: a watch notices that at once, and
    everything is compared again every `every` seconds.
    """

    objects: Objects
    name: str
    wanted: Callable[[], Awaitable[bytes]] | None = None
    every: float = 60.0
    paths: frozenset[str] = frozenset()
    """The paths at which the webhook answers: all paths in the configurations."""
    seen: dict[str, Seen] = field(default_factory=dict)
    """The configurations as last seen, by kind (`KINDS`); a kind that was never read is absent."""
    _one_check_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def read(self) -> bool:
        """True once both have been looked for, so that `paths` is complete."""
        return len(self.seen) == len(KINDS)

    def trusted_since(self, bundle: bytes) -> datetime | None:
        """Return since when every entry of both configurations has exactly this bundle; None while one does not.

        A missing configuration counts as having it, because nobody calls by it, and it gets the bundle when it returns.
        """
        encoded = frozenset({_encoded(bundle)})
        seen = [self.seen.get(kind) for kind in KINDS]
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
                about = {"kind": kind, "name": self.name, "reason": str(error)}
                log.warning("webhook configuration not checked", about)
                await asyncio.sleep(min(self.every, RETRY_SECONDS))

    async def _check(self, kind: str) -> str | None:
        """Compare one, write the differences, and return its resourceVersion; None if it is missing."""
        async with self._one_check_at_a_time:
            place, about = f"{GROUP}/{kind}", {"kind": kind, "name": self.name}
            found = await self.objects.get(place, self.name)
            version = _version(found)
            try:
                if found is not None:
                    # The patch tests the resourceVersion, because entries have no key but their position in the list,
                    # and if two replicas make a path only one may write. The wanted bundle is read after the
                    # configuration, so a replica that knows only the old CA can't overwrite the bundle that another
                    # has just written.
                    bundle = _encoded(await self.wanted()) if self.wanted is not None else None
                    operations = corrections(found, ENDS[kind], bundle)
                    if operations:
                        found = await self.objects.patch(place, self.name, operations)
                        version = _version(found)
                        log.info("webhook configuration written", {**about, "fields": len(operations) - 1})
            except Outdated:
                # The version that was read goes back, so a watch from there has the next check follow at once.
                log.debug("webhook configuration changed meanwhile", about)
                found = await self.objects.get(place, self.name)
            finally:
                self._note(kind, found)
        return version

    def _note(self, kind: str, found: Json | None) -> None:
        before, after = self.seen.get(kind), Seen(found, utc_now())
        if before is not None and before.bundles == after.bundles:
            after = Seen(found, before.since)
        self.seen[kind] = after
        self.paths = frozenset().union(*(each.paths for each in self.seen.values())) - {""}
        if before is None or before.registered != after.registered:
            about = {"kind": kind, "name": self.name}
            if after.registered:
                log.info("webhook registered", {**about, "entries": len(after.webhooks)})
            else:
                log.error("webhook not registered: the API server can't ask it", about)


def corrections(configuration: Json, end: str, ca_bundle: str | None) -> JsonPatch:
    """Return the JSON patch that gives each entry this caBundle (base64) and, for a Service, a secret path with `end`.

    The patch is empty if nothing is wrong. Without `ca_bundle` that field stays as it is.
    """
    webhooks = configuration.get("webhooks") or ()
    paths = [path if SECRET.fullmatch(path) and path.endswith(end) else "" for path in map(_path, webhooks)]
    secret = next(filter(None, paths), f"/{secrets.token_hex(16)}{end}")
    operations: JsonPatch = []
    for index, (webhook, path) in enumerate(zip(webhooks, paths, strict=True)):
        place = f"/webhooks/{index}/clientConfig"
        if ca_bundle is not None and _ca_bundle(webhook) != ca_bundle:
            operations.append({"op": "add", "path": f"{place}/caBundle", "value": ca_bundle})
        if not path and webhook["clientConfig"].get("service"):
            operations.append({"op": "add", "path": f"{place}/service/path", "value": secret})
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": _version(configuration)}
    return [test, *operations] if operations else []


def _path(webhook: Json) -> str:
    """Return the path at which this entry calls the webhook; "" for a path that nobody answers.

    A URL is written by a person, and may lead to any path with the right end.
    """
    config = webhook.get("clientConfig", {})
    if "service" in config:
        path = str(config["service"].get("path") or "")
        return path if SECRET.fullmatch(path) else ""
    path = urlsplit(str(config.get("url") or "")).path
    return path if path.endswith(tuple(ENDS.values())) else ""


def _version(configuration: Json | None) -> str | None:
    return None if configuration is None else str(configuration["metadata"]["resourceVersion"])


def _ca_bundle(webhook: Json) -> str:
    return str(webhook.get("clientConfig", {}).get("caBundle") or "")


def _encoded(bundle: bytes) -> str:
    return base64.b64encode(bundle).decode()
