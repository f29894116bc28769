"""Every value of the wrong type, null, unknown or contradicting another: helm names it, and says what would do."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path as Folder
from typing import Any

import pytest
import yaml

from .conftest import Refuse, Render
from .helm import CHART, Manifest, helm

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
Path = tuple[str, ...]


def leaves(schema: Manifest, above: Path = ()) -> Iterator[tuple[Path, Manifest]]:
    """Yield each value with its schema; sections are walked through, and what the policy takes too."""
    for name, each in schema["properties"].items():
        if "properties" in each:
            yield from leaves(each, (*above, name))
        else:
            yield (*above, name), each


def sections(schema: Manifest, above: Path = ()) -> Iterator[Path]:
    for name, each in schema["properties"].items():
        if "properties" in each:
            yield (*above, name)
            yield from sections(each, (*above, name))


LEAVES = [(path, schema) for path, schema in leaves(SCHEMA) if "type" in schema]
SECTIONS = [path for path in sections(SCHEMA) if path[0] != "global"]


def values_of(chosen: dict[Path, object]) -> Manifest:
    values: Manifest = {}
    for path, value in chosen.items():
        section: dict[str, Any] = values
        for name in path[:-1]:
            section = section.setdefault(name, {})
        section[path[-1]] = value
    return values


def wrong(schema: Manifest) -> object:
    """A value of a type that the schema does not take: a list, or a text where it takes lists."""
    return "text" if "array" in schema["type"] else []


def test_every_value_of_the_wrong_type_is_named_with_the_type_that_it_has(refuse: Refuse) -> None:
    said = refuse(**values_of({path: wrong(schema) for path, schema in LEAVES}))
    lines = dict(re.findall(r"^- (\S+): (.+)$", said, re.MULTILINE))
    for path, schema in LEAVES:
        expected = "Expected: .*, given: " + ("string" if "array" in schema["type"] else "array")
        if "$ref" not in schema:
            assert re.search(expected, lines[".".join(path)]), path


def test_every_section_that_is_no_map_is_named(refuse: Refuse) -> None:
    top = [path for path in SECTIONS if len(path) == 1]
    said = refuse(**values_of(dict.fromkeys(top, "text")))
    for (name,) in top:
        assert f"- {name}: Invalid type. Expected: object, given: string" in said


def default_of(path: Path) -> object:
    value: Any = DEFAULTS
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


OWN = [path for path, _ in LEAVES if path[0] not in ("policy", "global")]
NEEDED = [path for path in OWN if not isinstance(default_of(path), dict | list) and default_of(path) not in ("", None)]
OPTIONAL = [path for path in OWN if path not in NEEDED]
"""Texts that are empty, lists, maps, and sections that are empty: helm keeps a null of what has no default."""


def has_default(path: Path) -> bool:
    return path[-1] in (default_of(path[:-1]) or {})


def test_every_value_that_is_needed_is_named_when_it_is_null_with_an_example(refuse: Refuse) -> None:
    said = refuse(**values_of(dict.fromkeys(NEEDED)))
    for path in NEEDED:
        name = ".".join(path)
        example = str(default_of(path)).lower() if isinstance(default_of(path), bool) else default_of(path)
        assert f"  {name}: is missing or null; write for example --set {name}={example}\n" in said
    assert "nil pointer" not in said
    assert "--reset-then-reuse-values" in said


def test_a_section_that_is_null_is_reported_by_what_it_lacks(refuse: Refuse) -> None:
    top = [path for path in SECTIONS if len(path) == 1 and any(need[0] == path[0] for need in NEEDED)]
    assert len(top) > 10
    said = refuse(**values_of(dict.fromkeys(top)))
    missing = set(re.findall(r"^  (\S+): is missing or null", said, re.MULTILINE))
    assert missing == {".".join(path) for path in NEEDED if (path[0],) in top}


EXEMPT = ("exemptNamespaces",)


def test_a_value_or_a_section_that_may_be_empty_may_be_null(render: Render) -> None:
    empty = [path for path in SECTIONS if not any(need[: len(path)] == path for need in NEEDED)]
    everything = {"metrics": {each: {"enabled": True} for each in ("serviceMonitor", "prometheusRule", "dashboard")}}
    outside = {"webhook": {"url": "https://gpu-tiers.example.com"}}
    for paths in (OPTIONAL, empty):
        nothing = values_of(dict.fromkeys(path for path in paths if has_default(path) and path != EXEMPT))
        for more in ({"certificates": {"source": "cert-manager"}}, outside):
            assert render(**merged(merged(nothing, everything), more)).one("ValidatingWebhookConfiguration")


def merged(below: Manifest, above: Manifest) -> Manifest:
    result = copy.deepcopy(below)
    for name, value in above.items():
        there = result.get(name)
        result[name] = merged(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return result


def test_a_value_that_the_chart_does_not_know_is_named_in_every_section(refuse: Refuse) -> None:
    open_ones = {("global",)}
    chosen = [path for path in [(), *SECTIONS] if path not in open_ones]
    said = refuse(**values_of({(*path, "wrnog"): 1 for path in chosen}))
    for path in chosen:
        assert f"- {'.'.join(path) or '(root)'}: Additional property wrnog is not allowed" in said


WRONG_KEY: dict[str, Manifest] = {
    "commonLabels": {"no label": "x"},
    "policy.workloadTypes": {"no label": "gpu-batch"},
    "policy.allowedTiersByType": {"no label": ["gpu-batch"]},
    "policy.kinds.0.podLabels": {"no label": None},
    "policy.placement.gpu-batch.nodeSelector": {"no label": "x"},
}


def test_a_wrong_key_is_named_with_the_map_in_which_it_stands(refuse: Refuse) -> None:
    said = refuse(**holding(WRONG_KEY))
    for place in WRONG_KEY:
        assert f"- {place}: Additional property no label is not allowed" in said


@pytest.mark.release
def test_helm_4_names_the_same_values_and_places(helm_4: str, home: Folder) -> None:
    wrong_types = {path: wrong(schema) for path, schema in LEAVES if path[0] not in ("policy", "commonLabels")}
    values = merged(values_of(wrong_types), holding(WRONG_KEY))
    answer = helm("template", "gpu-tiers", str(CHART), home=home, values=values, program=helm_4)
    for path, value in wrong_types.items():
        assert f"at '/{'/'.join(path)}': got {'string' if value else 'array'}, want" in answer.stderr
    for place in WRONG_KEY:
        assert f"at '/{place.replace('.', '/')}': additional properties 'no label' not allowed" in answer.stderr
    needed = helm("template", "gpu-tiers", str(CHART), home=home, values=values_of({NEEDED[0]: None}), program=helm_4)
    assert f"{'.'.join(NEEDED[0])}: is missing or null; write for example" in needed.stderr


def holding(maps: dict[str, Manifest]) -> Manifest:
    """Values with these maps at their places; the one in a list gets the fields that its neighbours need."""
    values: Manifest = {}
    for place, entries in maps.items():
        *above, last = place.split(".")
        section: Any = values
        for name in above:
            section = section[0] if name == "0" else section.setdefault(name, [A_KIND] if name == "kinds" else {})
        section[last] = entries
    return values


A_KIND: Manifest = {"group": "ml.example.com", "kind": "Experiment", "plural": "experiments"}
ACCOUNT, ISSUER = {"create": False}, {"name": "internal-ca"}
PAGE_FOR_TOKENS = {"enabled": True, "authentication": {"enabled": True, "audiences": ["gpu-tiers"]}}
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}
CONTRADICTIONS: list[tuple[Manifest, str]] = [
    ({"ports": {"page": 9443}}, "ports.page: 9443 is ports.webhook already; give each a port of its own, such as"),
    ({"extraArgs": ["--port=1"]}, "extraArgs[0]: the chart sets --port itself; set the value ports.webhook instead"),
    ({"extraArgs": ["--namespace=x"]}, "extraArgs[0]: the chart sets --namespace itself; leave it out"),
    (
        {"page": PAGE_FOR_TOKENS, "ports": {"pageTLS": 9443}},
        "ports.pageTLS: 9443 is ports.webhook already; give each a port of its own, such as --set ports.pageTLS=9444",
    ),
    (
        {"extraArgs": ["--page-tls-port=8091"]},
        "extraArgs[0]: the chart sets --page-tls-port itself; set the value page.authentication.enabled instead",
    ),
    (
        {"commonLabels": {"helm.sh/chart": "x"}},
        "commonLabels: the chart sets helm.sh/chart itself; write another, such as app.kubernetes.io/part-of",
    ),
    (
        {"podLabels": {"app.kubernetes.io/name": "x"}},
        "podLabels: app.kubernetes.io/name is set by the chart already; leave it out here",
    ),
    (
        {"podLabels": {"team": "x"}, "commonLabels": {"team": "z"}},
        "podLabels: team is in commonLabels already; leave it out here",
    ),
    (
        {"extraVolumes": [{"name": "tls", "emptyDir": {}}]},
        "extraVolumes[0].name: tls is the chart's own; write another, such as my-tls",
    ),
    (
        {"extraEnv": [{"name": "POD_NAME", "value": "x"}]},
        "extraEnv[0].name: POD_NAME is the chart's own; write another, such as my-pod_name",
    ),
    (
        {"updateStrategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        "updateStrategy.rollingUpdate: goes with type RollingUpdate alone",
    ),
    ({"updateStrategy": ROLLING}, "maxSurge and maxUnavailable are both 0, so no pod could ever be replaced"),
    (
        {"replicas": 3, "podDisruptionBudget": {"minAvailable": 3}},
        "3 of 3 replicas lets no node be drained; write fewer, such as --set podDisruptionBudget.minAvailable=2",
    ),
    ({"serviceAccount": ACCOUNT}, "serviceAccount.name: is required without serviceAccount.create"),
    (
        {"hostNetwork": True, "hostUsers": False},
        "hostUsers: false does not work with hostNetwork=true; leave one of them out",
    ),
    ({"dnsPolicy": "None"}, "dnsConfig.nameservers: is required with dnsPolicy None; write for example"),
    (
        {"certificates": {"issuerRef": ISSUER}},
        "certificates.issuerRef: is for certificates.source=cert-manager, and that is self-managed",
    ),
    (
        {"certificates": {"source": "cert-manager", "issuerRef": {"kind": "Issuer"}}},
        "certificates.issuerRef.name: is required; write for example",
    ),
    (
        {"service": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4", "IPv6"]}},
        "service.ipFamilies: names two families, and service.ipFamilyPolicy is SingleStack",
    ),
    (
        {"webhook": {"clientNames": ["kube-apiserver"]}},
        "webhook.clientNames: needs webhook.clientCA, the CA of the certificates that bear them; write for example",
    ),
    (
        {"webhook": {"user": "gpu-tiers"}},
        "webhook.user: is for a webhook outside the cluster, and the one of the chart is its ServiceAccount",
    ),
    (
        {"webhook": {"clientCA": "PEM", "url": "https://gpu-tiers.example.com"}},
        "webhook.clientCA: is for the webhook that the chart runs, and webhook.url names another",
    ),
    (
        {"reports": {"enabled": True}, "webhook": {"url": "https://gpu-tiers.example.com"}},
        "reports.enabled: pods report to the Service of this release, and with webhook.url it has none",
    ),
    (
        {"resourceQuota": {"pods": 2}},
        "resourceQuota.pods: 2 is too few for 2 replicas and one more in an upgrade; write for example",
    ),
]


@pytest.mark.parametrize(("values", "reason"), CONTRADICTIONS, ids=lambda each: each if isinstance(each, str) else "")
def test_values_that_contradict_one_another_are_named(refuse: Refuse, values: Manifest, reason: str) -> None:
    said = refuse(**values)
    assert reason in said
    assert "nothing was applied" in said


def test_a_removed_tier_is_reported_wherever_it_is_named_at_once(refuse: Refuse) -> None:
    """In the policy and in the tenants, so that nobody corrects the one to be told of the other."""
    tiers = [{"name": "prod", "value": 1000}, {"name": "research", "value": 500}]
    policy = {"tiers": tiers, "defaultTier": "gone", "workloadTypes": {"training": "gone"}}
    selector = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    said = refuse(policy=policy, tenants=[{"name": "a", "spec": {**selector, "quotas": [{"tier": "gone", "gpus": 2}]}}])
    for place in ("defaultTier", "workloadTypes.training"):
        assert f'{place}: unknown tier "gone"' in said
    assert "tenants[0].spec.quotas[0].tier: gone is no tier of the policy" in said


def test_a_port_that_nobody_listens_on_may_be_another_ones(render: Render) -> None:
    assert render(ports={"webhook": 8091}).one("Deployment")
    assert render(ports={"webhook": 8090}, hostNetwork=True).one("Deployment")


def test_a_page_open_to_the_whole_node_is_refused_and_one_with_a_token_named(refuse: Refuse) -> None:
    said = refuse(hostNetwork=True, extraArgs=["--page-port=8090"])
    assert "the chart sets --page-port itself; set the value page.authentication.enabled instead" in said


def test_every_argument_that_the_chart_sets_is_refused_in_extra_args(render: Render, refuse: Refuse) -> None:
    (container,) = render(page=PAGE_FOR_TOKENS).one("Deployment")["spec"]["template"]["spec"]["containers"]
    own = container["args"][1:]
    assert {"--page-tls-port=8091", "--page-audience=gpu-tiers"} <= set(own)
    said = refuse(page=PAGE_FOR_TOKENS, extraArgs=own)
    for index, argument in enumerate(own):
        assert f"extraArgs[{index}]: the chart sets {argument.partition('=')[0]} itself; " in said


def test_all_that_does_not_fit_together_is_reported_at_once(refuse: Refuse) -> None:
    said = refuse(**(CONTRADICTIONS[0][0] | CONTRADICTIONS[1][0] | CONTRADICTIONS[-1][0]))
    for _, reason in (CONTRADICTIONS[0], CONTRADICTIONS[1], CONTRADICTIONS[-1]):
        assert reason in said
