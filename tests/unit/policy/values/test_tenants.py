"""The tenant of a namespace, and the tiers that it may use."""

import pytest

from tests.builders import Tree, a_policy, a_tenant
from webhook.policy.values.tenants import Tenant

LABELS = {"team": "a", "env": "prod"}


def selecting(selector: Tree, name: str = "alpha", created: str = "") -> Tenant:
    tree = a_tenant(name).json()
    tree["spec"]["namespaceSelector"] = selector
    tree["metadata"]["creationTimestamp"] = created
    tenant: Tenant = type(a_tenant())(tree).view()
    return tenant


def line(operator: str, key: str = "team", *values: str) -> Tree:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


SELECTORS: list[tuple[Tree, bool]] = [
    ({"matchLabels": {"team": "a"}}, True),
    ({"matchLabels": {"team": "a", "env": "dev"}}, False),
    (line("In", "team", "a", "b"), True),
    (line("In", "team", "b"), False),
    (line("In", "absent", "a"), False),
    (line("NotIn", "team", "b"), True),
    (line("NotIn", "team", "a"), False),
    (line("NotIn", "absent", "a"), True),
    (line("Exists"), True),
    (line("Exists", "absent"), False),
    (line("DoesNotExist", "absent"), True),
    (line("DoesNotExist"), False),
    ({"matchLabels": {"team": "a"}, **line("In", "env", "dev")}, False),
    ({}, True),
]


@pytest.mark.parametrize(("selector", "selects"), SELECTORS)
def test_a_selector_selects_as_kubernetes_does(selector: Tree, selects: bool) -> None:
    assert selecting(selector).selects(LABELS) is selects


CEILINGS: list[tuple[dict[str, object], list[str]]] = [
    ({}, ["gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive"]),
    ({"maxTier": "gpu-serving"}, ["gpu-serving", "gpu-batch", "gpu-interactive"]),
    ({"allowedTiers": ["gpu-interactive", "gpu-training"]}, ["gpu-training", "gpu-interactive"]),
    ({"maxTier": "gold"}, []),
    ({"allowedTiers": ["gold"]}, []),
]


@pytest.mark.parametrize(("spec", "may_use"), CEILINGS)
def test_a_ceiling(spec: dict[str, object], may_use: list[str]) -> None:
    tiers, tenant = a_policy().tiers, a_tenant(**spec).view()
    assert [tier.name for tier in tiers if tenant.may_use(tier, tiers)] == may_use
    highest = tiers.get(may_use[0]) if may_use else None
    assert tenant.ceiling(tiers) == (None if not spec else highest.value if highest else 0)
