"""One Event (core/v1) that is told of again and again: for each object and reason one, with a count.

core/v1, as the Job controller's FailedCreate: in events.k8s.io/v1 the text can't be changed later, and the numbers of a
refusal would stay those of the first.
"""

import hashlib
from dataclasses import dataclass
from typing import Self

from webhook.kube.paths import path
from webhook.objects.pods import OwnerReference
from webhook.objects.view import Tree
from webhook.policy.quota.tenant_quotas import API_VERSION, TENANT_QUOTA

SOURCE = "gpu-tiers.dev/webhook"
LONGEST_MESSAGE = 1024
LONGEST_NAME = 200
CALM = ("PolicyTaken",)
"""Reasons of what went well; all others warn."""


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an event is about; `namespace` is "" where it has none."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str = ""

    @classmethod
    def of(cls, found: OwnerReference, namespace: str) -> Self:
        """An object of a namespace, as a reference names it."""
        return cls(found.api_version, found.kind, found.name, found.uid, namespace)

    @classmethod
    def tenant_quota(cls, name: str, uid: str) -> Self:
        """A TenantQuota."""
        return cls(API_VERSION, TENANT_QUOTA.kind, name, uid)


@dataclass(frozen=True, slots=True)
class Stored:
    """How an event was stored last."""

    version: str
    count: int


@dataclass(slots=True)
class EventSeries:
    """What is told of one object for one reason. `pending` times are not written yet, and are not before `due`."""

    regarding: Regarding
    reason: str
    message: str = ""
    pending: int = 0
    due: float = 0.0
    stored: Stored | None = None

    def add(self, message: str) -> None:
        """It happened once more; the latest message is the one that is shown."""
        self.message = message[:LONGEST_MESSAGE]
        self.pending += 1

    @property
    def home(self) -> str:
        """The list that it is created in. kubectl looks in `default` for events about objects without a namespace."""
        return path("v1", "events", self._namespace)

    @property
    def place(self) -> str:
        """Where it lies: the same from every replica and after a restart, so that all count in one event."""
        return path("v1", "events", self._namespace, self._name)

    def created(self, new: int, now: str) -> Tree:
        """The event as it is written first, after so many times."""
        about = self.regarding
        regarding = {"apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "involvedObject": regarding | ({"namespace": about.namespace} if about.namespace else {}),
            "type": "Normal" if self.reason in CALM else "Warning",
            "reason": self.reason,
            "message": self.message,
            "count": new,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": SOURCE},
            "reportingComponent": SOURCE,
        }

    def raised(self, before: Stored, new: int, now: str) -> Tree:
        """The merge patch that counts so many times more; it conflicts if somebody has written since `before`."""
        said = {"message": self.message, "count": before.count + new, "lastTimestamp": now}
        return {"metadata": {"resourceVersion": before.version}, **said}

    @property
    def _namespace(self) -> str:
        return self.regarding.namespace or "default"

    @property
    def _name(self) -> str:
        told_apart = hashlib.sha256(f"{self.regarding.uid} {self.reason}".encode()).hexdigest()[:16]
        return f"{self.regarding.name[:LONGEST_NAME].rstrip('-.')}.{told_apart}"


def stored(event: Tree) -> Stored:
    """What the API server answered."""
    return Stored(event["metadata"]["resourceVersion"], event.get("count") or 0)
