"""The ceiling of priority classes, enforced by the API server alone: the webhook is dead, and tests write for it."""

from collections.abc import Iterable, Iterator
from itertools import count

import pytest

from localcluster import Cluster, Result
from localcluster.waiting import wait_until
from tests.builders import a_tenant
from tests.builders.tenants import TenantBuilder
from webhook.policy.quota.native_quotas import ceilings
from webhook.policy.values.tiers import PriorityClass, Tier, Tiers

from .asking import GPU, pod, try_create
from .helm import Manifest
from .release import Release
from .test_match_conditions import KUBELET, MIRROR, podgroup_version

pytestmark = pytest.mark.apiserver

CRITICAL = pod(priorityClassName="system-node-critical")
CRITICAL_MIRROR = CRITICAL | {"metadata": MIRROR["metadata"], "spec": {**CRITICAL["spec"], "nodeName": "node-1"}}
TIERS = Tiers([Tier("gpu-serving", 800), Tier("gpu-batch", 400)])
HOUSE: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "house"},
    "value": 700,
}
NUMBERS = count()
SERVING, BATCH = {"maxTier": "gpu-serving"}, {"maxTier": "gpu-batch"}


@pytest.fixture(scope="module")
def research(enforced: Release, namespace: str) -> Iterator[str]:
    """A namespace with labels, and a class of the cluster between two tiers."""
    enforced.cluster.api.label(f"namespace/{namespace}", {"team": "vision", "stage": ""})
    enforced.cluster.api.apply(HOUSE)
    yield namespace
    enforced.cluster.api.label(f"namespace/{namespace}", {"team": None, "stage": None})


def write(cluster: Cluster, tenants: Iterable[TenantBuilder], *classes: PriorityClass) -> None:
    """Put the ceilings where the leading replica puts them, and wait until the API server holds them.

    A last tenant, new each time, has all other namespaces.
    """
    last = f"zz-{next(NUMBERS)}"
    everything = *tenants, a_tenant(last, namespaceSelector={}, **SERVING)
    put(cluster, ceilings([each.view() for each in everything], TIERS, classes))
    wait_until(lambda: refused_by(cluster, "default") == last, 10, "the new ceilings")


def put(cluster: Cluster, data: dict[str, str]) -> None:
    cluster.api.patch("configmap/gpu-tiers-ceilings", {"data": data}, "gpu-tiers")


def said_of(cluster: Cluster, namespace: str, manifest: Manifest) -> str:
    return try_create(cluster, namespace, manifest).stderr.strip()


def refused_by(cluster: Cluster, namespace: str, manifest: Manifest = CRITICAL) -> str:
    """The tenant above whose ceiling a pod is; "" where it is created."""
    return tenant_in(try_create(cluster, namespace, manifest))


def tenant_in(answer: Result) -> str:
    said = answer.stderr.partition("above the ceiling of tenant ")[2].partition(";")[0]
    assert said or not answer.code, answer.stderr
    return said


def expressions(key: str, operator: str, *values: str) -> Manifest:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


LABELS = {"kubernetes.io/metadata.name": "research", "team": "vision", "stage": ""}
SELECTORS: dict[str, tuple[Manifest, bool]] = {
    "all": ({}, True),
    "its name": ({"matchLabels": {"kubernetes.io/metadata.name": "research"}}, True),
    "two labels": ({"matchLabels": {"team": "vision", "stage": ""}}, True),
    "one label of two": ({"matchLabels": {"team": "vision", "stage": "x"}}, False),
    "the word of an operator": ({"matchLabels": {"team": "In"}}, False),
    "a label that it lacks": ({"matchLabels": {"rank": ""}}, False),
    "one of several values": (expressions("team", "In", "speech", "vision"), True),
    "none of several values": (expressions("team", "In", "vis", "ion"), False),
    "not in, and it is": (expressions("team", "NotIn", "speech", "vision"), False),
    "not in, and it is not": (expressions("team", "NotIn", "speech"), True),
    "not in, and it lacks it": (expressions("rank", "NotIn", "1"), True),
    "exists": (expressions("stage", "Exists"), True),
    "exists, and it does not": (expressions("rank", "Exists"), False),
    "does not exist": (expressions("rank", "DoesNotExist"), True),
    "does not exist, and it does": (expressions("team", "DoesNotExist"), False),
    "what no label can be": ({"matchLabels": {"a b:c": "d,\ne 0"}}, False),
    "not in what no label can be": (expressions("team", "NotIn", "vision\n", "a b:c,d"), True),
}


def test_selectors_select_as_kubernetes_has_it(enforced: Release, research: str) -> None:
    for what, (selector, selects) in SELECTORS.items():
        tenant = a_tenant("alpha", namespaceSelector=selector, **BATCH)
        assert tenant.view().selects(LABELS) is selects, what
        here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [research]}
        narrowed = {**selector, "matchExpressions": [*selector.get("matchExpressions", []), here]}
        write(enforced.cluster, [a_tenant("alpha", namespaceSelector=narrowed, **BATCH)])
        assert (refused_by(enforced.cluster, research) == "alpha") is selects, what


def test_the_oldest_tenant_decides_also_if_it_has_no_ceiling(enforced: Release, research: str) -> None:
    younger = a_tenant("alpha", namespace=research, **BATCH)
    for name, ceiling, refuses in (("omega", SERVING, "omega"), ("free", {}, "")):
        older = a_tenant(name, namespace=research, **ceiling)
        write(enforced.cluster, [younger, older.having("metadata.creationTimestamp", "2025-01-01T00:00:00Z")])
        assert refused_by(enforced.cluster, research) == refuses


def test_a_class_is_measured_by_its_value(enforced: Release, research: str) -> None:
    house, tier = pod(priorityClassName="house"), pod(priorityClassName="gpu-training")
    for spec, refuses in (
        (SERVING, ""),
        (BATCH, "alpha"),
        ({"allowedTiers": ["gpu-batch", "gpu-serving"]}, ""),
        ({"maxTier": "gpu-servin"}, "alpha"),
    ):
        write(enforced.cluster, [a_tenant(namespace=research, **spec)])
        assert refused_by(enforced.cluster, research, house) == refuses
    answer = try_create(enforced.cluster, research, tier).stderr
    assert 'failed calling webhook "pods.validate.gpu-tiers.dev"' in answer, "a tier's class is the webhook's"


def test_the_sentence_names_class_ceiling_and_tenant_for_pods_with_gpus_too(enforced: Release, research: str) -> None:
    write(enforced.cluster, [a_tenant(namespace=research, **SERVING)])
    sentence = (
        "spec.priorityClassName: system-node-critical (2000001000) is above the ceiling of tenant alpha; "
        "its pods may have a class of value 800 at most, or none. See TenantQuota/alpha. [class-above-ceiling]"
    )
    for manifest in (CRITICAL, CRITICAL_MIRROR, pod(main=GPU, priorityClassName="system-node-critical")):
        assert said_of(enforced.cluster, research, manifest).endswith(f"denied request: {sentence}")


def test_what_is_admitted(enforced: Release, research: str) -> None:
    write(enforced.cluster, [a_tenant(namespace=research, **BATCH)], PriorityClass("house", 700, global_default=True))
    for manifest in (pod(), pod(priorityClassName="house")):
        assert refused_by(enforced.cluster, research, manifest) == ""
    assert tenant_in(try_create(enforced.cluster, research, CRITICAL_MIRROR, **KUBELET)) == ""
    assert refused_by(enforced.cluster, "kube-system") == ""


def test_a_pod_group_has_a_class_too(enforced: Release, research: str) -> None:
    version = podgroup_version(enforced.cluster)
    if not version:
        pytest.skip("this cluster serves no PodGroups")
    write(enforced.cluster, [a_tenant(namespace=research, **BATCH)])
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "priorityClassName": "house"}
    group = {"apiVersion": version, "kind": "PodGroup", "metadata": {"generateName": "gang-"}, "spec": spec}
    assert refused_by(enforced.cluster, research, group) == "alpha"


def test_a_thousand_tenants_are_not_too_many(enforced: Release, research: str) -> None:
    others = [a_tenant(f"team-{i}", namespace=f"team-{i}", **BATCH) for i in range(1000)]
    write(enforced.cluster, [*others, a_tenant("yours", namespace=research, **BATCH)])
    assert refused_by(enforced.cluster, research) == "yours"


def test_where_the_ceilings_cannot_be_read_a_class_above_a_tier_is_refused(enforced: Release, research: str) -> None:
    put(enforced.cluster, {"tenants": "alpha high"})
    wait_until(lambda: "type conversion error" in said_of(enforced.cluster, research, CRITICAL), 10, "the error")
    assert not try_create(enforced.cluster, research, pod()).code
