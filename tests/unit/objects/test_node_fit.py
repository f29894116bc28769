"""The nodes that take a pod, by labels, affinity and taints, as kube-scheduler has it."""

from typing import Any

import pytest

from webhook.objects.node_fit import Taint, obstacle
from webhook.objects.pods import PodSpec
from webhook.objects.view import view

LABELS = {"gpu": "h100", "generation": "9"}


def spec(**fields: object) -> PodSpec:
    return view(fields, PodSpec)


def with_affinity(*terms: list[dict[str, Any]]) -> PodSpec:
    selector = {"nodeSelectorTerms": [{"matchExpressions": each} for each in terms]}
    return spec(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}})


def line(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_a_term_without_lines_matches_no_node() -> None:
    assert obstacle(with_affinity([]), "gpu-0", LABELS, ()) == "ruled out by its node affinity"
    assert obstacle(with_affinity([], [line("gpu", "Exists")]), "gpu-0", LABELS, ()) == ""


def test_each_label_of_a_node_selector_must_be_there() -> None:
    assert obstacle(spec(nodeSelector={"gpu": "h100"}), "gpu-0", LABELS, ()) == ""
    lacks = obstacle(spec(nodeSelector={"gpu": "a100"}), "gpu-0", LABELS, ())
    assert lacks == "without the label gpu=a100 of its nodeSelector"


@pytest.mark.parametrize(
    ("expression", "takes"),
    [
        (line("gpu", "In", "h100", "a100"), True),
        (line("gpu", "NotIn", "h100"), False),
        (line("zone", "NotIn", "a"), True),
        (line("gpu", "Exists"), True),
        (line("gpu", "DoesNotExist"), False),
        (line("generation", "Gt", "8"), True),
        (line("generation", "Lt", "8"), False),
        (line("zone", "Gt", "8"), False),
        (line("gpu", "Unheard"), False),
    ],
)
def test_a_required_affinity_is_read_operator_by_operator(expression: dict[str, Any], takes: bool) -> None:
    assert (obstacle(with_affinity([expression]), "gpu-0", LABELS, ()) == "") is takes


def test_one_term_of_an_affinity_is_enough_but_all_of_its_lines() -> None:
    other, mine = line("gpu", "In", "a100"), line("gpu", "In", "h100")
    assert obstacle(with_affinity([other], [mine]), "gpu-0", LABELS, ()) == ""
    assert obstacle(with_affinity([other, mine]), "gpu-0", LABELS, ()) == "ruled out by its node affinity"


def test_a_pod_of_a_daemonset_fits_its_own_node_alone() -> None:
    term = {"matchFields": [line("metadata.name", "In", "gpu-0")]}
    selector = {"nodeSelectorTerms": [term]}
    pod = spec(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}})
    assert obstacle(pod, "gpu-0", LABELS, ()) == ""
    assert obstacle(pod, "gpu-1", LABELS, ()) == "ruled out by its node affinity"


@pytest.mark.parametrize(
    ("toleration", "takes"),
    [
        ({"key": "team", "value": "beta", "effect": "NoSchedule"}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "team", "value": "alpha"}, False),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({}, False),
    ],
)
def test_a_taint_keeps_out_who_does_not_tolerate_it(toleration: dict[str, str], takes: bool) -> None:
    taint = Taint(key="team", value="beta", effect="NoSchedule")
    found = obstacle(spec(tolerations=[toleration]), "gpu-0", LABELS, [taint])
    assert found == ("" if takes else "tainted with team=beta:NoSchedule, which it does not tolerate")


def test_a_taint_that_only_prefers_keeps_nobody_out() -> None:
    assert obstacle(spec(), "gpu-0", LABELS, [Taint(key="team", effect="PreferNoSchedule")]) == ""
