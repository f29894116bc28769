"""The API server's way with a create or an update: the webhooks as the chart installs them, then storage."""

import base64
import itertools
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonpatch

from tests.honest.api import Api
from tests.honest.objects import (
    FLAVOR_LABEL,
    GANGS,
    JOBS,
    KINDS,
    KUEUES_GATE,
    PODS,
    TIER_LABEL,
    Key,
    Tree,
    controller_of,
    copy,
    group_named,
    is_deleting,
    key_of,
    selected,
)
from tests.honest.replica import Replica
from tests.ledger.virtual_time import loop
from webhook.admission import review

MARKING_LABELS = (TIER_LABEL, "leaderworkerset.sigs.k8s.io/name")


@dataclass
class Reply:
    """The answer that a client of the API server gets. `tree`: the object as it was, or would have been, stored."""

    allowed: bool
    code: int = 200
    sentence: str = ""
    warnings: Sequence[str] = ()
    tree: Tree | None = None
    problems: list[str] = field(default_factory=list)
    lost: bool = False
    """We admitted it, and it was refused after us."""


class ApiServer:
    """Each review goes to some replica. The next `lose_next` creates are refused by a webhook after ours.

    `flavors`: those of the policy.
    """

    def __init__(self, api: Api, replicas: Sequence[Replica], flavors: Sequence[str], rng: random.Random) -> None:
        self.lose_next = 0
        self.full_until: dict[str, float] = {}
        """By namespace: until when a ResourceQuota refuses its pods."""
        self._flavors = flavors
        self._api = api
        self._replicas = replicas
        self._rng = rng
        self._uids = itertools.count(1)

    async def create(self, tree: Tree) -> Reply:
        kind, path = tree["kind"], KINDS[tree["kind"]]
        namespace, problems = tree["metadata"]["namespace"], list[str]()

        # 1. Skip objects that no matchCondition lets through.
        if not _is_reviewed(tree):
            if self._is_taken(path, namespace, tree["metadata"].get("name", "")):
                return Reply(False, 409, "already exists")
            return Reply(True, tree=self._stored(path, tree))
        if not any(each.alive for each in self._replicas):
            return Reply(False, 503, "no replica")

        # 2. Mutate twice: the second call must change nothing.
        now = tree
        for again in (False, True) if kind in ("Pod", "Job", "PodGroup") else ():
            answer = await self._ask("mutate", self._request("CREATE", now, None))
            if not answer["allowed"]:
                return _refusal(answer, None, problems)
            patch = json.loads(base64.b64decode(answer["patch"])) if answer.get("patch") else []
            if again and patch:
                problems.append(f"a second mutation changes {patch}")
            now = jsonpatch.JsonPatch(patch).apply(copy(now))

        # 3. Give the object its name and uid, and validate it.
        number = next(self._uids)
        metadata = {**now["metadata"], "uid": f"{kind.lower()}-{number}"}
        if kind != "Pod":
            metadata["generation"] = 1
        metadata.setdefault("name", f"{metadata.get('generateName', '')}{number:x}")
        now = {**now, "metadata": metadata}
        answer = await self._ask("validate", self._request("CREATE", now, None))
        if not answer["allowed"]:
            return _refusal(answer, now, problems)
        warnings = answer.get("warnings", ())

        # 4. Store it, unless a later webhook refuses it or the name is taken.
        if self.lose_next > 0 and not kind.startswith("ResourceClaim"):
            self.lose_next -= 1
            return Reply(False, 500, "refused by another webhook", warnings, now, problems, lost=True)
        if kind == "Pod" and loop().time() < self.full_until.get(namespace, 0):
            return Reply(False, 403, "is forbidden: exceeded quota: compute", warnings, now, problems, lost=True)
        if self._is_taken(path, namespace, metadata["name"]):
            return Reply(False, 409, "already exists", warnings, now, problems)
        return Reply(True, 201, "", warnings, self._stored(path, now), problems)

    async def update(self, kind: str, key: Key, change: Callable[[Tree], Tree], *, scale: bool = False) -> Reply:
        """Change the spec of a workload, by itself or by its `scale` subresource."""
        path = KINDS[kind]
        old = self._api.find(path, key)
        if old is None:
            return Reply(False, 404, "gone")
        spec = change(copy(old["spec"]))
        if spec == old["spec"]:
            return Reply(True, tree=old)
        new = {**copy(old), "spec": spec}
        new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        warnings: Sequence[str] = ()
        request = self._update_request(old, new, scale=scale)
        if request is not None:
            if not any(each.alive for each in self._replicas):
                return Reply(False, 503, "no replica")
            answer = await self._ask("validate", request)
            warnings = answer.get("warnings", ())
            if not answer["allowed"]:
                return _refusal(answer, new, [])
        if self._api.find(path, key) is None:
            return Reply(False, 404, "gone", warnings)
        return Reply(True, 200, "", warnings, self._api.change(path, key, spec=spec))

    async def admit_for_kueue(self, pod: Tree, flavor: str) -> Reply:
        """Lift Kueue's gate, and choose nodes of a flavor; "" for any."""
        gates = [each for each in pod["spec"]["schedulingGates"] if each["name"] != KUEUES_GATE]
        new = {**copy(pod), "spec": {**copy(pod["spec"]), "schedulingGates": gates}}
        if flavor:
            new["spec"]["nodeSelector"] = {**new["spec"].get("nodeSelector", {}), FLAVOR_LABEL: flavor}
        if self._flavors and flavor:
            answer = await self._ask("validate", self._request("UPDATE", new, pod))
            if not answer["allowed"]:
                return _refusal(answer, new, [])
        now = self._api.still_there(PODS, pod)
        if now is None or now["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]:
            return Reply(False, 409, "the object has been modified")
        return Reply(True, tree=self._api.change(PODS, key_of(now), spec=_without_no_gates(new["spec"])))

    def _update_request(self, old: Tree, new: Tree, *, scale: bool) -> Any:
        """Return the review of an update, None where the chart's rules ask for none."""
        if not _is_reviewed(new) or is_deleting(old):
            return None
        if not scale:
            return self._request("UPDATE", new, old)
        if new["kind"] not in ("PyTorchJob", "LeaderWorkerSet"):
            return None
        before, after = map(_scaled, (old, new))
        if after <= before:
            return None
        metadata = {each: old["metadata"][each] for each in ("name", "namespace", "uid", "resourceVersion")}

        def scale_to(replicas: int) -> Tree:
            return {
                "kind": "Scale",
                "apiVersion": "autoscaling/v1",
                "metadata": metadata,
                "spec": {"replicas": replicas},
            }

        return self._request("UPDATE", scale_to(after), scale_to(before), of=new)

    def _request(self, operation: str, new: Tree, old: Tree | None, of: Tree | None = None) -> Any:
        """Return the decoded AdmissionReview; `of` is the object whose scale subresource this is."""
        whole = of or new
        group, _, version = whole["apiVersion"].rpartition("/")
        group_kind = {"group": group, "version": version, "kind": whole["kind"]}
        request = {
            "uid": f"review-{next(self._uids)}",
            "kind": group_kind if of is None else {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "resource": {"group": group, "version": version, "resource": KINDS[whole["kind"]].rsplit("/", 1)[1]},
            "name": new["metadata"].get("name", ""),
            "namespace": new["metadata"]["namespace"],
            "operation": operation,
            "userInfo": {"username": _sender(whole), "groups": ["system:authenticated"]},
            "object": new,
            "oldObject": old,
            "dryRun": False,
            **({} if of is None else {"subResource": "scale"}),
        }
        envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        return review.decode(json.dumps(envelope).encode())

    async def _ask(self, webhook: str, request: Any) -> Tree:
        replica = self._rng.choice([each for each in self._replicas if each.alive])
        answer: Tree = json.loads(await getattr(replica.webhooks, webhook)(request))["response"]
        return answer

    def _is_taken(self, path: str, namespace: str, name: str) -> bool:
        return self._api.find(path, (namespace, name)) is not None

    def _stored(self, path: str, tree: Tree) -> Tree:
        tree = copy(tree)
        tree.pop("status", None)
        if path == PODS:
            tree["status"] = {"phase": "Pending"}
        uid = tree["metadata"].setdefault("uid", f"{tree['kind'].lower()}-{next(self._uids)}")
        if path == JOBS:  # as the API server defaults it
            tree["spec"] |= selected(tree["spec"]["template"], {"batch.kubernetes.io/controller-uid": uid})
        return self._api.make(path, tree)


def _without_no_gates(spec: Tree) -> Tree:
    return {name: value for name, value in spec.items() if value or name != "schedulingGates"}


def _refusal(answer: Tree, tree: Tree | None, problems: list[str]) -> Reply:
    status = answer["status"]
    return Reply(False, status["code"], status["message"], answer.get("warnings", ()), tree, problems)


def _scaled(tree: Tree) -> int:
    """Return what the scale subresource of a gang says."""
    spec = tree["spec"]
    return int(
        spec["replicas"] if tree["kind"] == "LeaderWorkerSet" else spec["pytorchReplicaSpecs"]["Worker"]["replicas"]
    )


def _is_reviewed(tree: Tree) -> bool:
    """Tells what the chart's matchConditions and rules let through."""
    if tree["kind"] == "Pod":
        labels = tree["metadata"].get("labels", {})
        asks = any(each.get("resources", {}).get("limits") for each in tree["spec"]["containers"])
        asks = asks or bool(tree["spec"].get("resourceClaims"))
        return asks or any(each in labels for each in MARKING_LABELS) or bool(group_named(tree))
    if tree["kind"] == "ResourceClaim":
        return True
    if tree["kind"] == "ResourceClaimTemplate":
        return False
    controller = controller_of(tree)
    return controller is None or (tree["kind"] in GANGS and controller["kind"] not in GANGS)


def _sender(tree: Tree) -> str:
    """Return who creates an object: controllers of Kubernetes make pods as their own service accounts."""
    controller = controller_of(tree)
    if controller is None or controller["kind"] not in ("ReplicaSet", "StatefulSet", "Job", "DaemonSet"):
        return "ada"
    return f"system:serviceaccount:kube-system:{controller['kind'].lower()}-controller"
