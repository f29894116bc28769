"""Values: what each one changes in the rendered objects, and which ones helm refuses."""

import json
import re
from typing import Any

import pytest
import yaml

from webhook.config.load import parse
from webhook.config.model import (
    CheckpointSection,
    FlavorSection,
    HookSection,
    MatchSection,
    PolicyFile,
    ResourceSection,
    RuleSection,
    TierSection,
)
from webhook.config.sections import OwnKindSection
from webhook.policy.workloads.kind_table import BUILT_IN

from .conftest import Refuse, Render
from .helm import CHART, Chart, Manifest

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
GATES = {
    "pods.validate.gpu-tiers.dev",
    "pods-update.validate.gpu-tiers.dev",
    "resourceclaims.validate.gpu-tiers.dev",
}


@pytest.mark.parametrize("mode", ["Audit", "Warn"])
def test_before_enforce_a_dead_webhook_stops_nothing(render: Render, mode: str) -> None:
    policies = {entry["failurePolicy"] for entry in render(mode=mode).entries().values()}
    assert policies == {"Ignore"}


def test_enforce_closes_the_gates_and_nothing_else(render: Render) -> None:
    chart = render(mode="Enforce")
    closed = {name for name, entry in chart.entries().items() if entry["failurePolicy"] == "Fail"}
    assert closed == GATES
    mutating = chart.entries("MutatingWebhookConfiguration").values()
    assert {entry["failurePolicy"] for entry in mutating} == {"Ignore"}


def test_the_default_is_audit(render: Render) -> None:
    policy = yaml.safe_load(render().one("ConfigMap", "gpu-tiers")["data"]["policy.yaml"])
    assert policy == {
        "apiVersion": "config.gpu-tiers.dev/v1alpha1",
        "kind": "TierPolicy",
        "preset": "four-tier",
        "mode": "Audit",
        "adoption": False,
    }


@pytest.mark.parametrize("preset", ["four-tier", "three-tier", "inference-first"])
def test_a_preset_gives_each_tier_its_two_classes(render: Render, preset: str) -> None:
    tiers = yaml.safe_load((CHART / "presets" / f"{preset}.yaml").read_text())["tiers"]
    classes = {each["metadata"]["name"]: each for each in render(preset=preset).of("PriorityClass")}
    assert set(classes) == {f"{tier['name']}{twin}" for tier in tiers for twin in ("", "-nonpreempting")}
    for tier in tiers:
        own, twin = classes[tier["name"]], classes[f"{tier['name']}-nonpreempting"]
        assert (own["value"], own["preemptionPolicy"]) == (tier["value"], tier["preemptionPolicy"])
        assert (twin["value"], twin["preemptionPolicy"]) == (tier["value"], "Never")


@pytest.mark.parametrize("preset", ["four-tier", "three-tier", "inference-first"])
def test_a_priority_that_no_ceiling_can_forbid_is_not_asked_about(render: Render, preset: str) -> None:
    tiers = yaml.safe_load((CHART / "presets" / f"{preset}.yaml").read_text())["tiers"]
    assert lowest_priority_asked_about(render(preset=preset)) == str(min(tier["value"] for tier in tiers))


def lowest_priority_asked_about(chart: Chart) -> str:
    (condition,) = chart.one("ValidatingAdmissionPolicy", "gpu-tiers-ceilings")["spec"]["matchConditions"]
    (value,) = re.findall(r"spec\.\?priority\.orValue\(0\) > (\d+) ", condition["expression"])
    return str(value)


OWN_KINDS = [
    {
        "group": "ml.example.com",
        "kind": "Experiment",
        "plural": "experiments",
        "gang": True,
        "gangLabel": "ml.example.com/run",
        "scale": "spec.workers",
    },
    {"group": "ray.io", "kind": "RayTune", "plural": "raytunes"},
    {"group": "ray.io", "kind": "RayCluster", "usualType": "interactive"},
]


def test_a_kind_of_the_policy_is_asked_about_and_may_be_read(render: Render) -> None:
    chart = render(policy={"kinds": OWN_KINDS})
    entries = chart.entries()
    for group, resources, gangs in (
        ("ml.example.com", ["experiments"], ["experiments"]),
        ("ray.io", ["rayclusters", "rayjobs", "raycronjobs", "rayservices", "raytunes"], ["rayclusters", "rayjobs"]),
    ):
        (rule,) = entries[f"{group}.workloads.gpu-tiers.dev"]["rules"]
        assert (rule["apiGroups"], rule["resources"]) == ([group], resources)
        rules = [rule for rule in chart.one("ClusterRole", "gpu-tiers")["rules"] if rule["apiGroups"] == [group]]
        assert [(rule["resources"], rule["verbs"]) for rule in rules] == [
            (resources, ["get"]),
            (gangs, ["list", "watch"]),
        ]
    (rule,) = entries["ml.example.com.scale.gpu-tiers.dev"]["rules"]
    assert (rule["resources"], rule["operations"]) == (["experiments/scale"], ["UPDATE"])
    assert '"ml.example.com/run"' in entries["pods.validate.gpu-tiers.dev"]["matchConditions"][-1]["expression"]
    in_the_file = yaml.safe_load(chart.one("ConfigMap", "gpu-tiers")["data"]["policy.yaml"])
    assert len(parse(yaml.safe_dump(in_the_file)).kinds.rows) == len(BUILT_IN.rows) + 2


def test_a_policy_replaces_the_presets_tiers(render: Render) -> None:
    tiers = [{"name": "gold", "value": 1_000_000_000}, {"name": "lead", "value": 5, "preemptionPolicy": "Never"}]
    chart = render(policy={"tiers": tiers, "defaultTier": "lead"})
    values = {each["metadata"]["name"]: each["value"] for each in chart.of("PriorityClass")}
    assert values == {"gold": 10**9, "gold-nonpreempting": 10**9, "lead": 5, "lead-nonpreempting": 5}
    condition = chart.entries()["pods.validate.gpu-tiers.dev"]["matchConditions"][-1]["expression"]
    assert '["gold","gold-nonpreempting","lead","lead-nonpreempting"]' in condition
    assert "gpu-training" not in condition
    assert lowest_priority_asked_about(chart) == "5"
    assert yaml.safe_load(chart.one("ConfigMap", "gpu-tiers")["data"]["policy.yaml"])["tiers"] == tiers


def test_tenants_become_objects(render: Render) -> None:
    spec = {"namespaceSelector": {"matchLabels": {"team": "alpha"}}, "quotas": [{"gpus": "16"}]}
    (tenant,) = render(tenants=[{"name": "alpha", "spec": spec}]).of("TenantQuota")
    assert (tenant["metadata"]["name"], tenant["spec"]) == ("alpha", spec)


def test_the_releases_namespace_is_always_exempt(render: Render) -> None:
    for entry in render(exemptNamespaces=["storage"]).entries().values():
        (expression,) = entry["namespaceSelector"]["matchExpressions"]
        assert expression == {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["gpu-tiers", "storage"],
        }


def test_a_webhook_outside_the_cluster_leaves_nothing_to_run_inside(render: Render) -> None:
    chart = render(webhook={"url": "https://gpu-tiers.example.com:8443/"})
    assert {each["kind"] for each in chart} == {
        "PriorityClass", "CustomResourceDefinition", "ConfigMap", "Secret", "Lease", "ClusterRole",
        "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    }  # fmt: skip
    urls = {entry["clientConfig"]["url"] for entry in chart.entries().values()}
    assert urls == {"https://gpu-tiers.example.com:8443/validate"}


def test_cert_manager_writes_the_trust(render: Render) -> None:
    chart = render(certificates={"source": "cert-manager"})
    certificate = chart.one("Certificate", "gpu-tiers")
    assert certificate["spec"]["secretName"] == "gpu-tiers-tls"
    assert "gpu-tiers.gpu-tiers.svc" in certificate["spec"]["dnsNames"]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = chart.one(kind)["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": "gpu-tiers/gpu-tiers"}
    assert not chart.of("Secret")
    assert "--certificates=files" in container(chart.one("Deployment"))["args"]


def test_an_administrator_may_bring_certificates(render: Render) -> None:
    chart = render(certificates={"source": "files", "secretName": "mine", "caBundle": "Q0E="})
    volumes = {each["name"]: each for each in pod_spec(chart.one("Deployment"))["volumes"]}
    assert volumes["tls"]["secret"] == {"secretName": "mine"}
    assert {entry["clientConfig"]["caBundle"] for entry in chart.entries().values()} == {"Q0E="}
    (role,) = chart.of("Role")
    assert not [rule for rule in role["rules"] if "secrets" in rule["resources"]]


REFUSED: list[tuple[Manifest, str]] = [
    ({"mode": "enforce"}, 'mode must be one of the following: "Audit", "Warn", "Enforce"'),
    ({"preset": "five-tier"}, "preset must be one of the following"),
    ({"replicas": 0}, "replicas: Must be greater than or equal to 1"),
    ({"createTimeoutSeconds": 1.5}, "createTimeoutSeconds: Invalid type. Expected: integer, given: number"),
    (
        {"tenants": [{"name": "alpha", "spec": {"namespaceSelector": {}, "backstop": "ResourceQuota"}}]},
        "tenants[0].spec.backstop: ResourceQuota needs the value backstop.enabled=true",
    ),
    (
        {"page": {"enabled": False, "authentication": {"enabled": True}}},
        "page.authentication.enabled=true needs page.enabled=true",
    ),
    ({"page": {"authentication": {"audiences": "gpu-tiers"}}}, "audiences: Invalid type. Expected: array"),
    ({"page": {"prometheus": {"url": "prometheus:9090"}}}, "page.prometheus.url: Does not match pattern"),
    (
        {"page": {"prometheus": {"url": "http://prometheus:9090", "tokenFile": "/var/run/prometheus/token"}}},
        "page.prometheus.tokenFile: the token would go over the network for all to read",
    ),
    ({"webhook": {"url": "http://plain.example.com"}}, "webhook.url: Does not match pattern"),
    ({"tenant": []}, "Additional property tenant is not allowed"),
    ({"policy": {"tirs": []}}, "policy: Additional property tirs is not allowed"),
    ({"policy": {"mode": "Enforce"}}, "policy.mode: set the value mode instead"),
    (
        {"policy": {"tiers": [{"name": "x", "value": 10**9 + 1}], "defaultTier": "x"}},
        "Must be less than or equal to",
    ),
    ({"policy": {"tiers": [{"name": "Gold", "value": 1}]}}, "policy.tiers.0.name: Does not match pattern"),
    ({"tenants": [{"name": "alpha"}]}, "tenants.0: spec is required"),
    ({"policy": {"tiers": [{"name": "x", "value": 1}]}}, "  defaultTier: is required"),
    ({"certificates": {"source": "vault"}}, "certificates.source must be one of"),
]


@pytest.mark.parametrize(("values", "reason"), REFUSED, ids=lambda each: each if isinstance(each, str) else "")
def test_helm_refuses(refuse: Refuse, values: Manifest, reason: str) -> None:
    assert reason in refuse(**values)


def test_every_value_has_a_description_and_a_default() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    without = {"global", "tenants"}
    assert set(defaults) == set(SCHEMA["properties"]) - without, "tenants are given or are not"
    undescribed = [path for path, schema in walk("", SCHEMA) if "description" not in schema]
    assert undescribed == []


def walk(path: str, schema: Manifest) -> list[tuple[str, Manifest]]:
    """Yield each property of a schema, and of the schemas under it, with its path."""
    found = [(path, schema)]
    for name, each in schema.get("properties", {}).items():
        found += walk(f"{path}.{name}", each)
    if "properties" in schema.get("items", {}):
        found += walk(f"{path}[]", schema["items"])
    return found


def pod_spec(deployment: Manifest) -> dict[str, Any]:
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def pod_specs(chart: Chart) -> list[dict[str, Any]]:
    """Return the specs of all pods that the chart runs: the webhook's, that of `helm test`, the uninstall Job's."""
    return [pod_spec(chart.one("Deployment")), chart.one("Pod")["spec"], pod_spec(chart.one("Job"))]


def container(deployment: Manifest) -> dict[str, Any]:
    (only,) = pod_spec(deployment)["containers"]
    return dict(only)


def test_the_schema_knows_the_fields_of_the_policy_file() -> None:
    fields = {field.alias or name for name, field in PolicyFile.model_fields.items()}
    policy = SCHEMA["properties"]["policy"]["properties"]
    assert set(policy) == fields
    for section, schema in (
        (ResourceSection, policy["resources"]["items"]),
        (FlavorSection, policy["resourceFlavors"]["items"]),
        (TierSection, policy["tiers"]["items"]),
        (RuleSection, policy["rules"]["items"]),
        (MatchSection, policy["rules"]["items"]["properties"]["match"]),
        (OwnKindSection, policy["kinds"]["items"]),
        (CheckpointSection, policy["checkpoint"]),
        (HookSection, SCHEMA["definitions"]["hook"]),
    ):
        assert set(schema["properties"]) == {each.alias or name for name, each in section.model_fields.items()}
        assert not schema["additionalProperties"]


@pytest.mark.parametrize("preset", ["four-tier", "three-tier", "inference-first"])
def test_the_webhook_accepts_the_policy_that_the_chart_writes(render: Render, preset: str) -> None:
    policy = {"rules": [{"match": {"namespaces": ["lab"]}, "tier": "only"}], "workloadTypes": {"training": "only"}}
    tiers = {"tiers": [{"name": "only", "value": 7}], "defaultTier": "only"}
    for values in ({}, {"policy": policy | tiers}):
        written = render(preset=preset, mode="Enforce", adoption=True, **values).one("ConfigMap", "gpu-tiers")
        read = parse(written["data"]["policy.yaml"])
        assert (read.mode.name, read.adoption) == ("Enforce", True)
