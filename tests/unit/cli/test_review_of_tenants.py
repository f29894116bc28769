"""`gpu-tiers review --tenants`: what the API server would refuse is refused, in a sentence that names the field."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import Tree, a_job, a_namespace, a_pod, a_tenant
from tests.builders.quota_specs import ACCEPTED, REFUSED, SELECTOR
from tests.unit.cli.reviewing import EXAMPLES, findings, review
from webhook.config.tenant_quota_schema import tenant_quota_schema

POD = str(EXAMPLES / "pod-batch.yaml")


def written(tmp_path: Path, spec: Tree, **fields: object) -> Path:
    """A file of a TenantQuota with this spec."""
    file = tmp_path / "tenants.yaml"
    tree = {"apiVersion": "gpu-tiers.dev/v1alpha1", "kind": "TenantQuota", "metadata": {"name": "alpha"}}
    file.write_text(json.dumps(tree | {"spec": SELECTOR | spec} | fields))
    return file


@pytest.mark.parametrize("spec", ACCEPTED, ids=lambda spec: "+".join(spec) or "selector alone")
def test_what_the_api_server_takes_is_taken(tmp_path: Path, spec: Tree) -> None:
    code, _, errors = review("-f", POD, "--tenants", str(written(tmp_path, spec)))
    assert code != 2, errors


@pytest.mark.parametrize(("spec", "sentence"), [(spec, sentence) for spec, _, sentence in REFUSED], ids=lambda _: "")
def test_what_the_api_server_refuses_is_refused(tmp_path: Path, spec: Tree, sentence: str) -> None:
    file = written(tmp_path, spec)
    code, out, errors = review("-f", POD, "--tenants", str(file))
    assert (code, out) == (2, "")
    assert errors == f"{file}:1: TenantQuota/alpha: {sentence}\n"


@pytest.mark.parametrize("policy", ["", "three-tier"])
def test_whose_tiers_are_not_those_of_the_preset_reads_by_which_policy_it_was_judged(
    tmp_path: Path, policy: str
) -> None:
    file = written(tmp_path, {"maxTier": "normal", "namespaceSelector": {}})
    named = ("--policy", policy) if policy else ()
    _, _, errors = review("-f", POD, "--tenants", str(file), *named)
    judged_by = "judged by the preset four-tier, because --policy names no file; its tiers: gpu-training, gpu-serving"
    assert (judged_by in errors) is not bool(policy)


def test_every_mistake_of_every_object_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text(
        """
apiVersion: gpu-tiers.dev/v1alpha1
kind: TenantQuota
metadata: {name: alpha, lables: {team: a}}
spec: {namespaceSelector: {}, quota: [{gpus: 6}], onExceed: deny}
---
apiVersion: gpu-tiers.dev/v1
kind: TenantQuota
metadata: {name: beta}
spec: {}
---
apiVersion: gpu-tiers.dev/v1alpha1
kind: TenantQuota
metadata: {name: Gamma, labels: {year: 2026}}
"""
    )
    _, _, errors = review("-f", POD, "--tenants", str(file))
    assert errors.splitlines() == [
        (
            f"{file}:2: TenantQuota/alpha: metadata.lables: there is no such field; write one of name, generateName, "
            "labels, annotations"
        ),
        (
            f"{file}:2: TenantQuota/alpha: spec.quota: there is no such field; write one of namespaceSelector, "
            "maxTier, allowedTiers, defaultTier, quotas, budgets, grants, onExceed, demoteTo, holdOrder, "
            "reserveSeconds, quotaAuthority, backstop"
        ),
        f'{file}:2: TenantQuota/alpha: spec.onExceed: "deny" is not accepted; write one of Deny, Demote, Warn, Hold',
        f'{file}:7: TenantQuota/beta: apiVersion: "gpu-tiers.dev/v1" is not served; write gpu-tiers.dev/v1alpha1',
        (
            f'{file}:12: TenantQuota/Gamma: metadata.name: "Gamma" should match '
            r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
        ),
        f'{file}:12: TenantQuota/Gamma: metadata.labels.year: "2026" should be text; write it in quotes',
        f"{file}:12: TenantQuota/Gamma: spec: is required",
    ]


def test_a_tenant_as_the_api_server_gives_it_is_taken(tmp_path: Path) -> None:
    metadata = {
        "name": "alpha", "uid": "705ab4f5", "creationTimestamp": "2026-11-01T08:00:00Z", "generation": 2,
        "managedFields": [{"manager": "kubectl"}], "annotations": {"a": "b"},
    }  # fmt: skip
    status = {"conditions": [{"type": "Ready", "status": "True"}], "whatever": 1}
    file = written(tmp_path, {}, metadata=metadata, status=status)
    assert review("-f", POD, "--tenants", str(file))[0] != 2


def test_a_tenant_among_the_workloads_is_looked_at_too(tmp_path: Path) -> None:
    code, _, errors = review("-f", str(written(tmp_path, {"maxTeir": "gpu-batch"})))
    assert code == 2
    assert "spec.maxTeir: there is no such field" in errors


NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata: {name: lab, labels: {team: a}}
"""
TENANT = """---
apiVersion: gpu-tiers.dev/v1alpha1
kind: TenantQuota
metadata: {name: NAME}
spec: {namespaceSelector: {matchLabels: {team: TEAM}}, maxTier: TIER, quotas: [{gpus: 6}]}
"""


def tenant(name: str, team: str = "a", tier: str = "gpu-batch") -> str:
    return TENANT.replace("NAME", name).replace("TEAM", team).replace("TIER", tier)


def test_what_kubectl_apply_would_warn_of_is_said_offline(tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text(NAMESPACE + tenant("alpha") + tenant("beta") + tenant("gamma", team="c", tier="gold"))
    code, _, errors = review("-f", POD, "--tenants", str(file))
    assert code == 1, "gamma would be refused"
    advice = "too; the one that was created first applies there. Make the selectors exclude each other"
    assert errors.splitlines()[:3] == [
        f"{file}:6: TenantQuota/alpha: [overlap] TenantQuota beta selects lab {advice}",
        f"{file}:11: TenantQuota/beta: [overlap] TenantQuota alpha selects lab {advice}",
        (
            f"{file}:16: TenantQuota/gamma: [selects-nothing] spec.namespaceSelector of TenantQuota gamma "
            "selects no namespace that exists now; compare it with kubectl get namespaces --show-labels"
        ),
    ]


@pytest.mark.parametrize("option", ["--tenants", "-f"])
def test_a_quota_that_the_webhook_would_refuse_is_refused_in_every_output(tmp_path: Path, option: str) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text(NAMESPACE + tenant("alpha") + tenant("gamma", tier="gold"))
    asked = ("-f", POD, option, str(file))
    code, out, errors = review(*asked)
    assert code == 1
    assert out.splitlines().count(f"TenantQuota gamma ({file}:11)") == 1
    assert 'refused: spec.maxTier: unknown tier "gold"; known tiers: ' in out
    assert f"refused: TenantQuota gamma ({file}:11)" in out
    assert "gold" not in errors, "it is said once"
    denied = [each for each in findings(*asked) if each["verdict"] == "Denied"]
    assert [(each["kind"], each["name"]) for each in denied] == [("TenantQuota", "gamma")]
    assert str(denied[0]["message"]).endswith("[unknown-tier]")
    results = json.loads(review(*asked, "-o", "sarif")[1])["runs"][0]["results"]
    assert [each["ruleId"] for each in results if each["level"] == "error"] == ["refused"]
    assert '<testcase name="TenantQuota gamma"' in review(*asked, "-o", "junit")[1]
    assert review(*asked, "-o", "junit")[0] == 1


def test_a_quota_among_the_objects_and_the_tenants_is_reported_once(tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text(tenant("gamma", tier="gold"))
    (found,) = findings("-f", str(file), "--tenants", str(file))
    assert (found["name"], found["verdict"]) == ("gamma", "Denied")


def test_a_priority_class_that_the_cluster_may_have_is_asked_for(tmp_path: Path) -> None:
    pod = a_pod().asking(1).of_class("urgent")
    objects = [a_namespace(), a_tenant(maxTier="gpu-batch"), pod, a_job(pod, name="later")]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all([each.json() for each in objects]))
    found = [str(each["message"]) for each in findings("-f", str(tmp_path / "pods.yaml")) if each["message"]]
    words = "spec.priorityClassName: no PriorityClass named urgent is among the files; give it by --tenants"
    assert found == [f"{words} [class-not-given]", f"spec.template.{words} [class-not-given]"]
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 7}
    (tmp_path / "class.yaml").write_text(yaml.safe_dump_all([urgent, a_namespace().json()]))
    given = findings("-f", str(tmp_path / "pods.yaml"), "--tenants", str(tmp_path / "class.yaml"))
    assert "class-not-given" not in json.dumps(given)


def test_a_label_of_a_namespace_that_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "namespace.yaml"
    file.write_text(NAMESPACE.replace("team: a", "gpu-tiers.dev/mode: Enfroce"))
    for given in (("-f", POD, "--tenants", str(file)), ("-f", POD, "-f", str(file))):
        line = f'{file}:2: Namespace/lab: [unknown-mode] label gpu-tiers.dev/mode: "Enfroce" is no mode'
        assert review(*given)[2].startswith(line)


def test_without_namespaces_nobody_knows_what_it_selects(tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text(tenant("alpha"))
    assert "[selects-nothing]" not in review("-f", POD, "--tenants", str(file))[2]


def walk(tree: Any) -> Iterator[Tree]:
    """Yield each schema in a schema."""
    if isinstance(tree, dict) and ("type" in tree or "x-kubernetes-int-or-string" in tree):
        yield tree
        for each in (*tree.get("properties", {}).values(), tree.get("items"), tree.get("additionalProperties")):
            yield from walk(each)


KNOWN = {
    "description", "type", "properties", "required", "additionalProperties", "items", "enum", "pattern", "default",
    "format", "minimum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties", "x-kubernetes-validations",
    "x-kubernetes-int-or-string", "anyOf", "x-kubernetes-list-type", "x-kubernetes-map-type",
}  # fmt: skip


def test_every_keyword_of_the_schema_is_understood() -> None:
    spec = list(walk(tenant_quota_schema()["properties"]["spec"]))
    assert {keyword for each in spec for keyword in each} <= KNOWN


def test_every_rule_of_the_schema_refuses_a_spec() -> None:
    spec = list(walk(tenant_quota_schema()["properties"]["spec"]))
    rules = {rule["message"] for each in spec for rule in each.get("x-kubernetes-validations", ())}
    broken = {message for message in rules for _, _, sentence in REFUSED if sentence.endswith(message)}
    assert broken == rules


def test_a_workload_without_room_is_not_offered_what_one_of_its_pods_would_fit(tmp_path: Path) -> None:
    rows = [{"tier": "gpu-training", "gpus": 6}, {"tier": "gpu-batch", "gpus": 8}]
    file = written(tmp_path, {"quotas": rows, "allowedTiers": ["gpu-training", "gpu-batch"]})
    job = """
apiVersion: batch/v1
kind: Job
metadata: {name: llm, namespace: team-alpha, labels: {gpu-tiers.dev/tier: gpu-training}}
spec:
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: train, resources: {limits: {nvidia.com/gpu: 8}}}]
"""
    labels = SELECTOR["namespaceSelector"]["matchLabels"]
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-alpha", "labels": labels}}
    _, out, _ = review("-f", "-", "--tenants", str(file), stdin=f"{job}---\n{json.dumps(home)}")
    assert "refused: tenant alpha: gpu-training allows 6 GPUs; this Job asks for 16 in all." in out
    assert "its pod refused" not in out


def test_pods_are_counted_on_the_nodes_that_their_namespace_chooses(tmp_path: Path) -> None:
    """The files hold the namespace, whose selector the API server writes on the pods."""
    selector = "nvidia.com/gpu.product=NVIDIA-L4"
    annotations = {"scheduler.alpha.kubernetes.io/node-selector": selector}
    tenant = a_tenant().allowing("9").allowing("0", flavor="h100").json()
    job, pod = a_job(a_pod().asking(2)).json(), a_pod().asking(2).named("alone").json()
    files = tmp_path / "all.yaml"
    for namespace, refused in ((a_namespace(), 2), (a_namespace().annotated(annotations), 0)):
        files.write_text(yaml.safe_dump_all([namespace.json(), tenant, job, pod]))
        found = findings("-f", str(files), "--policy", str(EXAMPLES / "policies" / "four-tier.yaml"))
        assert sum("h100 allows 0 GPUs" in str(each["message"]) for each in found) == refused
