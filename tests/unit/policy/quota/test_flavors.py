"""The flavor that a pod names, and on which it counts before it runs: by its node selector and affinity."""

import pytest

from tests.builders import PodBuilder, a_pod, a_policy
from webhook.policy.quota.charges import flavor_of
from webhook.policy.values.tenants import QuotaRow

PRODUCT = "nvidia.com/gpu.product"
FLAVORS = [
    {"name": "h100", "nodeLabels": {PRODUCT: "H100"}},
    {"name": "a100", "nodeLabels": {PRODUCT: "A100", "zone": "b"}},
]
ANY = "h100? a100?"


def affinity(*terms: dict[str, object]) -> PodBuilder:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return a_pod().having("spec.affinity", {"nodeAffinity": required})


def term(*values: str, operator: str = "In", key: str = PRODUCT) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def selecting(**labels: str) -> PodBuilder:
    return a_pod().having("spec.nodeSelector", {{"product": PRODUCT}.get(key, key): labels[key] for key in labels})


A_NODE = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
PREFERRED = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}

PODS: dict[str, tuple[PodBuilder, str | None, str | None]] = {
    "nothing said": (a_pod(), None, ANY),
    "a node selector": (selecting(product="H100"), "h100", "h100"),
    "another value": (selecting(product="L4"), None, None),
    "one of two labels": (selecting(product="A100"), None, "a100?"),
    "both labels": (selecting(product="A100", zone="b"), "a100", "a100"),
    "one of two labels, and not the other": (selecting(product="A100", zone="c"), None, None),
    "another label": (selecting(pool="large"), None, ANY),
    "required affinity": (affinity(term("H100")), "h100", "h100"),
    "every term": (affinity(term("H100"), term("H100")), "h100", "h100"),
    "one of two terms": (affinity(term("H100"), term("L4")), None, "h100?"),
    "a term of another label": (affinity(term("L4"), term("b", key="zone")), None, ANY),
    "one of two values": (affinity(term("H100", "L4")), None, "h100?"),
    "not this one": (affinity(term("H100", operator="NotIn")), None, "a100?"),
    "none that has the label": (affinity(term(operator="DoesNotExist")), None, None),
    "any that has the label": (affinity(term(operator="Exists")), None, ANY),
    "no term": (affinity(), None, ANY),
    "a node by its name": (affinity(A_NODE), None, ANY),
    "a preference binds nobody": (a_pod().having("spec.affinity", PREFERRED), None, ANY),
    "affinity to pods": (a_pod().having("spec.affinity", {"podAffinity": {}}), None, ANY),
    "a gate": (a_pod().having("spec.schedulingGates", [{"name": "wait"}]), None, None),
    "a gate, and a node selector": (
        selecting(product="H100").having("spec.schedulingGates", [{"name": "wait"}]),
        "h100",
        "h100",
    ),
}


@pytest.mark.parametrize(("pod", "when_bound", "worst"), PODS.values(), ids=PODS)
def test_the_flavor_of_a_pod_that_runs_nowhere_yet(pod: PodBuilder, when_bound: str | None, worst: str | None) -> None:
    assert flavor_of(pod.view(), a_policy(resourceFlavors=FLAVORS, flavorUnnamed="WhenBound")) == when_bound
    assert flavor_of(pod.view(), a_policy(resourceFlavors=FLAVORS)) == worst


def test_of_flavors_with_the_same_labels_the_first_takes_the_node() -> None:
    """A pod that names the second may land on nodes that count as the first, and never the other way round."""
    narrow = {"name": "h100-ib", "nodeLabels": {PRODUCT: "H100", "fabric": "ib"}}
    assert (
        flavor_of(selecting(product="H100").view(), a_policy(resourceFlavors=[narrow, FLAVORS[0]])) == "h100-ib? h100?"
    )
    assert flavor_of(selecting(product="H100").view(), a_policy(resourceFlavors=[FLAVORS[0], narrow])) == "h100"


def test_what_may_be_of_some_flavors_draws_on_the_rows_of_each() -> None:
    def counting(flavor: str | None) -> list[bool]:
        return [QuotaRow(1, None, row).counts("gpu-batch", flavor) for row in (None, "h100", "a100", "100")]

    assert counting(ANY) == [True, True, True, False]
    assert counting("a100?") == [True, False, True, False]
    assert counting("a100") == [True, False, True, False]
    assert counting(None) == [True, False, False, False]
    assert not QuotaRow(1, "gpu-training", "h100").counts("gpu-batch", ANY)
