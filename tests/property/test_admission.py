"""Admission for every input: total on hostile bytes, and on pods a patch that applies, settles, and keeps its place."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import Tree, a_deployment, a_job, a_pod, a_policy, a_pytorchjob, a_tenant
from tests.builders.built import Built
from tests.builders.world import FakeApi, priority_admits
from tests.property.anything import SHAPES, spoiled, trees
from tests.property.pods import OWNERS, TIERS, pods
from webhook.admission.patch import escaped
from webhook.admission.review import BadReview, Request, decode
from webhook.objects.group_kind import POD, POD_GROUP, SCHEDULING_WORKLOAD
from webhook.policy.metadata_keys import MARKS, WRITTEN
from webhook.policy.placement import CLUSTER_AUTOSCALER, KARPENTER
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import BUILT_IN

KEYS = KARPENTER, CLUSTER_AUTOSCALER
hostile = settings(suppress_health_check=list(HealthCheck))

FLAVORED = a_policy(resourceFlavors=[{"name": "h100", "nodeLabels": {"nvidia.com/gpu.product": "H100"}}])
WRITING = a_policy(templates="Mutate", kueue={"workloadPriorityClasses": True})
HOOKS = {"training": {"kind": "signal"}, "interactive": {"kind": "sigterm"}, "tiers": {"gpu-batch": {"kind": "sleep"}}}
RULES = {
    "nodeSelector": {"nvidia.com/gpu.product": "H100", "pool": "gpu"},
    "tolerations": [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "pool", "value": "gpu"},
    ],
    "maxRuntimeSeconds": 3600,
}
PLACING = {
    tier: {"strategy": strategy, "topologyKey": topology_key, **RULES}
    for tier, strategy, topology_key in (
        ("gpu-training", "Pack", "topology.kubernetes.io/rack"),
        ("gpu-serving", "Spread", "topology.kubernetes.io/zone"),
        ("gpu-batch", "Pack", "kubernetes.io/hostname"),
        ("gpu-interactive", "Spread", "kubernetes.io/hostname"),
    )
}
PLACED = a_policy(
    placement=PLACING,
    resourceFlavors=[{"name": "h100", "nodeLabels": {"nvidia.com/gpu.product": "H100"}}],
)
SCHEDULED = a_policy(
    templates="Mutate",
    scheduling={
        "gpu-training": {"schedulerName": "volcano", "queue": {"system": "Volcano", "name": "training"}},
        "gpu-serving": {"queue": {"system": "KAI", "name": "serving"}},
        "gpu-batch": {"schedulerName": "our-kai", "queue": {"system": "KAI", "name": "night"}},
        "gpu-interactive": {"schedulerName": "bin-packer"},
    },
)
SCALED_DOWN = a_policy(
    autoscaler={"gpu-training": "Protect", "gpu-serving": "24h", "gpu-batch": "Allow", "gpu-interactive": "90m"}
)
POLICIES = [
    FLAVORED,
    PLACED,
    SCHEDULED,
    SCALED_DOWN,
    a_policy(adoption=True, checkpoint=HOOKS),
    a_policy(unmanagedClasses="Replace", mode="Warn"),
    WRITING,
]
QUEUED = [
    FakeApi().sent(each.labelled({"kueue.x-k8s.io/queue-name": "research"}))
    for each in (a_deployment(a_pod().asking(2)), a_pytorchjob(a_pod().asking(4)), a_job(a_pod().asking()))
]
SCALED = a_pytorchjob(a_pod().asking(2), workers=2).json()
SCALE = {"metadata": {"name": "work", "uid": "uid-of-work"}, "spec": {"replicas": 4}, "status": {"replicas": 2}}
ALLOWED_PATHS = re.compile(
    r"/spec/(priorityClassName|priority|preemptionPolicy|terminationGracePeriodSeconds)"
    rf"|/metadata/(labels|annotations)(/({'|'.join(re.escape(escaped(key)) for key in sorted(WRITTEN))}))?"
    r"|/spec/containers/\d+/(lifecycle(/preStop)?|volumeMounts(/-)?|env(/-|/\d+/value)?)"
    r"|/spec/(volumes|tolerations)(/-)?"
    r"|/spec/(affinity(/podAffinity)?|topologySpreadConstraints|activeDeadlineSeconds|schedulerName)"
    r"|/spec/nodeSelector(/(pool|nvidia\.com~1gpu\.product))?"
)

REVIEW: Tree = json.loads(FakeApi().body(a_pod().asking()))
KIND_NAMES = [POD, POD_GROUP, SCHEDULING_WORKLOAD, *((row.group, row.kind) for row in BUILT_IN.rows)]


def decoded(body: bytes) -> Request | None:
    """The request, or None for a bad review; nothing else is ever raised."""
    try:
        return decode(body)
    except BadReview as bad:
        said = str(bad)
    assert len(said) < 300
    return None


@hostile
@given(st.binary() | st.text().map(str.encode) | trees.map(lambda tree: json.dumps(tree).encode()))
def test_bytes_are_a_review_or_a_bad_one(body: bytes) -> None:
    assert decoded(body) is None, "no arbitrary tree is a review"


@hostile
@given(spoiled(REVIEW))
def test_a_spoiled_review_is_decoded_or_a_bad_one(tree: Tree) -> None:
    request = decoded(json.dumps(tree).encode())
    assert request is None or request.uid


@hostile
@given(
    tree=st.one_of(trees, *(spoiled(shape) for shape in SHAPES)),
    kind=st.sampled_from(KIND_NAMES),
    operation=st.sampled_from(["CREATE", "UPDATE", "DELETE", ""]),
    policy=st.sampled_from(POLICIES),
)
async def test_no_object_brings_a_webhook_down(
    tree: Any, kind: tuple[str, str], operation: str, policy: TierPolicy
) -> None:
    world = FakeApi(a_tenant().allowing("6").allowing("1", flavor="h100"), policy=policy)
    await both_answer(world, tree, kind, operation)


@hostile
@given(data=st.data(), policy=st.sampled_from(POLICIES), operation=st.sampled_from(["CREATE", "UPDATE"]))
async def test_a_spoiled_object_is_answered(data: st.DataObject, policy: TierPolicy, operation: str) -> None:
    """Under its own kind, where most of it is read."""
    shape = data.draw(st.sampled_from(SHAPES))
    tree = data.draw(spoiled(shape))
    kind = (shape["apiVersion"].rpartition("/")[0], shape["kind"])
    await both_answer(FakeApi(a_tenant().allowing("6"), policy=policy), tree, kind, operation)


@hostile
@given(data=st.data())
async def test_a_patch_of_a_workload_applies_and_settles(data: st.DataObject) -> None:
    """A patch that does not apply is a 500, whatever the failurePolicy."""
    tree = data.draw(spoiled(data.draw(st.sampled_from(QUEUED)), below=2))
    world, place = FakeApi(policy=WRITING), {"name": "work", "namespace": "team-alpha"}
    patched = (await world.mutate(tree, **place)).patched
    assert (await world.mutate(patched, **place)).patch == [], "a second pass changes nothing"


@hostile
@given(scale=trees | spoiled(SCALE), job=spoiled(SCALED, below=2))
async def test_no_scale_brings_a_webhook_down(scale: Any, job: Tree) -> None:
    """Whatever the Scale is, and whatever lies at the place of the workload that it names."""
    found = {**job, "apiVersion": SCALED["apiVersion"], "kind": SCALED["kind"]}
    resource = {"group": "kubeflow.org", "version": "v1", "resource": "pytorchjobs"}
    world = FakeApi(a_tenant().allowing("6"), Built(found))
    asked = {"name": "work", "operation": "UPDATE", "resource": resource, "subResource": "scale"}
    request = decoded(world.body(SCALED, **asked, object=scale, oldObject=scale))
    response = request and await answered(world.webhooks.validate, request)
    assert response is None or response["allowed"] or response["status"]["message"].isprintable()


async def both_answer(world: FakeApi, tree: Any, kind: tuple[str, str], operation: str) -> None:
    named = {"group": kind[0], "version": "v1", "kind": kind[1]}
    changes = {"kind": named, "operation": operation, "oldObject": tree, "namespace": "team-alpha"}
    body = world.body(a_pod().asking(), **changes, object=tree)
    for webhook in (world.webhooks.mutate, world.webhooks.validate):
        request = decoded(body)
        if request is None:
            return  # JSON that Python writes and JSON does not know: NaN, a lone surrogate
        response = await answered(webhook, request)
        assert response is None or response["allowed"] or response["status"]["message"].isprintable()


async def answered(webhook: Callable[[Request], Awaitable[bytes]], request: Request) -> Tree | None:
    """The response, or None for what no rule of ours sends; nothing else is ever raised."""
    try:
        response: Tree = json.loads(await webhook(request))["response"]
    except BadReview:
        return None
    return response


@hostile
@given(pod=pods(), policy=st.sampled_from(POLICIES), demotes=st.booleans())
async def test_every_patch_applies_settles_and_keeps_its_place(pod: Tree, policy: TierPolicy, demotes: bool) -> None:
    tenants = [a_tenant(onExceed="Demote").allowing("0", tier="gpu-training").allowing("999999")] if demotes else []
    world = FakeApi(*OWNERS, *tenants, policy=policy)
    answer = await world.mutate(pod)
    patched = answer.patched
    priority_admits(patched, world.known.classes())
    assert not [operation["path"] for operation in answer.patch if not ALLOWED_PATHS.fullmatch(operation["path"])]
    assert all(operation["op"] == "add" for operation in answer.patch)
    assert (await world.mutate(patched)).patch == [], "a second pass changes nothing"
    lost(pod, patched)


@hostile
@given(pod=pods(), theirs=st.dictionaries(st.sampled_from(KEYS), st.text(max_size=8)))
async def test_what_an_author_tells_autoscalers_stays_and_what_is_left_alone_tells_nothing(
    pod: Tree, theirs: dict[str, str]
) -> None:
    notes = {key: text for key, text in (pod["metadata"].get("annotations") or {}).items() if key not in KEYS}
    pod["metadata"]["annotations"] = notes | theirs
    patched = (await FakeApi(*OWNERS, policy=SCALED_DOWN).mutate(pod)).patched
    told = {key: text for key, text in patched["metadata"]["annotations"].items() if key in KEYS}
    assert theirs.items() <= told.items()
    assert told == theirs or patched["spec"]["priorityClassName"] in TIERS


def lost(before: Tree, after: Tree) -> None:
    """Return what is lost of the user's hooks, mounts, volumes, labels, grace, and node and pod rules."""
    for map_ in ("labels", "annotations"):
        theirs = {key: value for key, value in (before["metadata"].get(map_) or {}).items() if key not in MARKS}
        assert theirs.items() <= (after["metadata"].get(map_) or {}).items()
    assert_rules_unchanged(before["spec"], after["spec"])
    grace = before["spec"].get("terminationGracePeriodSeconds")
    assert (after["spec"].get("terminationGracePeriodSeconds") or 0) >= (grace or 0)
    for old, new in zip(before["spec"]["containers"], after["spec"]["containers"], strict=True):
        own = (old.get("lifecycle") or {}).get("preStop")
        assert own is None or new["lifecycle"]["preStop"] == own
        mounts = old.get("volumeMounts") or []
        assert (new.get("volumeMounts") or [])[: len(mounts)] == mounts
        variables = old.get("env") or []
        assert (new.get("env") or [])[: len(variables)] == variables


def assert_rules_unchanged(before: Tree, after: Tree) -> None:
    """Check that the user's rules about nodes and other pods are still there."""
    assert (before.get("nodeSelector") or {}).items() <= (after.get("nodeSelector") or {}).items()
    tolerations = before.get("tolerations") or []
    assert (after.get("tolerations") or [])[: len(tolerations)] == tolerations
    for field in ("topologySpreadConstraints", "activeDeadlineSeconds"):
        assert not before.get(field) or after[field] == before[field]
    for kind, terms in (before.get("affinity") or {}).items():
        assert not terms or after["affinity"][kind] == terms


@hostile
@given(pod=pods(), policy=st.sampled_from([FLAVORED, PLACED]))
async def test_what_mutate_made_is_allowed_and_what_it_left_is_refused(pod: Tree, policy: TierPolicy) -> None:
    world = FakeApi(*OWNERS, policy=policy)
    mutated = await world.mutate(pod)
    validated = await world.validate(world.stored(mutated.patched))
    if mutated.audit:
        assert validated.allowed, validated.sentence
        assert validated.audit == mutated.audit
    elif validated.allowed:
        assert not holds_gpus(pod), "nothing that holds GPUs passes unseen"


@hostile
@given(pod=pods(), ceiling=st.sampled_from(list(TIERS)))
async def test_no_annotation_or_label_reaches_above_the_ceiling(pod: Tree, ceiling: str) -> None:
    world = FakeApi(*OWNERS, a_tenant(maxTier=ceiling, onExceed="Demote"))
    mutated = (await world.mutate(pod)).patched
    if holds_gpus(pod) and (await world.validate(world.stored(mutated))).allowed:
        assert mutated["spec"]["priority"] <= TIERS[ceiling]


def holds_gpus(pod: Tree) -> bool:
    each = [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or [])]
    return any(container["resources"].get("requests", {}).get("nvidia.com/gpu") not in (None, 0) for container in each)
