"""A cluster without a cluster: the API server's half of a review, from full objects to answers, by bytes alone."""

import base64
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonpatch
from msgspec.structs import replace

from tests.builders.built import Built, Tree
from tests.builders.counted_ledger import CountedLedger
from tests.builders.pods import PodBuilder
from tests.builders.policies import a_policy
from tests.builders.words import without_id
from webhook.admission import review
from webhook.admission.review import Request
from webhook.admission.reviewer import Verdict
from webhook.admission.webhook import Webhooks
from webhook.cluster.cluster import Cluster
from webhook.cluster.offline import ReadOnce, offline_cluster
from webhook.objects.refusal import Unreadable
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.values.tiers import PriorityClass

POD = ("", "v1", "Pod")
REVIEW_UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


class Known(ReadOnce):
    """The objects given, without the namespaces in `gone`. A test may also remove classes from `live`."""

    def __init__(self, given: ReadOnce) -> None:
        super().__init__(
            given.live, given.active, given.read, labels_of=given.labels_of, device_classes=given.device_classes
        )
        self.gone: set[str] = set()

    async def namespace(self, name: str) -> Namespace:
        if name in self.gone:
            raise Unreadable(f"Namespace/{name} does not exist")
        return await super().namespace(name)


@dataclass
class Answer:
    """An AdmissionReview's response, read as the API server reads it."""

    sent: Tree
    response: Tree

    @property
    def allowed(self) -> bool:
        return bool(self.response["allowed"])

    @property
    def sentence(self) -> str:
        return without_id(str(self.response.get("status", {}).get("message", "")))

    @property
    def warnings(self) -> list[str]:
        return list(map(without_id, self.response.get("warnings", [])))

    @property
    def audit(self) -> dict[str, str]:
        return dict(self.response.get("auditAnnotations", {}))

    @property
    def patch(self) -> list[Tree]:
        encoded = self.response.get("patch")
        assert (encoded is None) == (self.response.get("patchType") is None), "patch and patchType go together"
        return list(json.loads(base64.b64decode(encoded))) if encoded else []

    @property
    def patched(self) -> Tree:
        """The object after its patch; a patch that does not apply is a 500 in the API server, and an error here."""
        result: Tree = jsonpatch.JsonPatch(self.patch).apply(json.loads(json.dumps(self.sent)))
        return result


class FakeApi:
    """An API server with our webhooks behind it, and the objects that are there.

    What is sent is a builder, whose pod gets the defaults, or a tree, which is sent as it is.
    """

    def __init__(self, *objects: Built, policy: TierPolicy | None = None) -> None:
        self.policy = policy or a_policy()
        self.now = 0.0
        given = offline_cluster(self.policy.tiers, [each.json() for each in objects])
        self.known = Known(given.known)
        self.cluster = Cluster(self.known, given.lookups)
        self.policy = replace(self.policy, classes=self.known.device_classes)
        self.ledger = CountedLedger(lambda: self.now, self.known.tenant_name, patience=0)
        self.records: list[tuple[str, Request, Verdict, Mode]] = []
        self.webhooks = Webhooks(
            self.cluster, self.ledger, lambda: self.policy, lambda *all_: self.records.append(all_)
        )
        self._numbers = itertools.count(1)
        self._names: set[str] = set()

    async def mutate(self, obj: Any, **changes: object) -> Answer:
        """One call of the mutating webhook."""
        obj = self.sent(obj)
        sent = await self.webhooks.mutate(review.decode(self.body(obj, **changes)))
        return _answer(obj, sent, changes.get("uid", REVIEW_UID))

    async def validate(self, obj: Any, **changes: object) -> Answer:
        """One call of the validating webhook."""
        obj = self.sent(obj)
        sent = await self.webhooks.validate(review.decode(self.body(obj, **changes)))
        return _answer(obj, sent, changes.get("uid", REVIEW_UID))

    async def update(self, old: Built | Tree, new: Built | Tree, **changes: object) -> Answer:
        """An UPDATE as the validating webhook sees it."""
        return await self.validate(new, operation="UPDATE", oldObject=self.sent(old), **changes)

    async def create(self, obj: Built | Tree, **changes: object) -> Answer:
        """A CREATE: mutated, Priority's check, mutated again as reinvocation does, then validated with its uid."""
        mutated = (await self.mutate(obj, **changes)).patched
        if mutated["kind"] == "Pod":
            priority_admits(mutated, self.known.classes())
        again = await self.mutate(mutated, **changes)
        assert again.patch == [], "a second pass changes nothing"
        return await self.validate(self.stored(mutated), **changes)

    def sent(self, obj: Any) -> Any:
        """The object as mutating webhooks see it: a pod has what the API server and Priority fill in."""
        if not isinstance(obj, PodBuilder):
            tree = obj.json() if isinstance(obj, Built) else obj
            built = isinstance(obj, Built) and tree["kind"] in ("PodGroup", "CompositePodGroup")
            return group_as_sent(tree, self.known.classes()) if built else tree
        live = self.known.classes().get(obj.tree["spec"].get("priorityClassName", ""))
        tree = obj.sent()
        if live is not None:
            filled_in = {"priority": live.value, "preemptionPolicy": live.preemption_policy}
            tree["spec"] |= filled_in | obj.tree["spec"]
        return tree

    def stored(self, obj: Built | Tree) -> Tree:
        """The object as validating webhooks see it: with its uid and its generated name.

        A pod that is made again gets a name of its own: the API server stores no two of one name.
        """
        obj, number = self.sent(obj), next(self._numbers)
        metadata = {**obj["metadata"], "uid": f"0c5e1b1a-5f0c-4e0c-9d5c-{number:012d}"}
        name = metadata.setdefault("name", f"{metadata.get('generateName', '')}x7k2p")
        if obj.get("kind") == "Pod" and name in self._names:
            metadata["name"] = f"{name}-{number}"
        self._names.add(metadata["name"])
        return {**obj, "metadata": metadata}

    def body(self, obj: object, **changes: object) -> bytes:
        """The AdmissionReview for an object, as kube-apiserver 1.37 writes it."""
        obj = self.sent(obj)
        kind = _kind_of(obj) if isinstance(obj, dict) else dict(zip(("group", "version", "kind"), POD, strict=True))
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        metadata = metadata if isinstance(metadata, dict) else {}
        plural = str(kind["kind"]).lower() + "s"
        resource = {"group": kind["group"], "version": kind["version"], "resource": plural}
        request = {
            "uid": REVIEW_UID,
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": metadata.get("name", ""),
            "namespace": metadata.get("namespace", "team-alpha"),
            "operation": "CREATE",
            "userInfo": {"username": "ada@example.com", "groups": ["system:authenticated"]},
            "object": obj,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        }
        envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {**request, **changes}}
        return json.dumps(envelope, separators=(",", ":")).encode()


def group_as_sent(group: Tree, classes: Mapping[str, PriorityClass]) -> Tree:
    """Return a PodGroup with the priority that the in-tree plugin writes, and what a client's create leaves behind.

    disruptionMode has a default, and is among the fields that an Update manages, whoever wrote it.
    """
    spec = group.get("spec")
    if not isinstance(spec, dict):
        return group
    live = classes.get(spec.get("priorityClassName", ""))
    older = group["apiVersion"].endswith("/v1alpha2")
    filled_in = {"priority": live.value if live else 0, "disruptionMode": "Pod" if older else {"single": {}}}
    managed = {"operation": "Update", "fieldsV1": {"f:spec": {"f:disruptionMode": {}, "f:schedulingPolicy": {}}}}
    metadata = group["metadata"] and {"managedFields": [managed], **group["metadata"]}
    return {**group, "metadata": metadata, "spec": {**filled_in, **spec}}


def priority_admits(pod: Tree, classes: Mapping[str, PriorityClass]) -> None:
    """Check a pod as the in-tree Priority plugin (plugin/pkg/admission/priority): a mix is an AssertionError."""
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    live = classes[name] if name else PriorityClass("", 0)
    assert spec.get("priority", live.value) == live.value
    assert spec.get("preemptionPolicy", live.preemption_policy) == live.preemption_policy


def _kind_of(obj: Tree) -> Tree:
    group, _, version = str(obj.get("apiVersion", "v1")).rpartition("/")
    return {"group": group, "version": version, "kind": obj.get("kind", "Pod")}


def _answer(obj: Tree, sent: bytes, uid: object) -> Answer:
    envelope = json.loads(sent)
    assert (envelope["apiVersion"], envelope["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert envelope["response"]["uid"] == uid
    return Answer(obj, envelope["response"])
