"""The documents that `gpu-tiers review` reads: manifests, tenants, a policy, and others, which are named."""

from pathlib import Path

import pytest

from tests.unit.cli.reviewing import EXAMPLES, WORLD, findings, review


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "standard input: not YAML"),
        ("- 1", "standard input:1: not a Kubernetes object: apiVersion and kind are required"),
        ("{kind: Pod, apiVersion: v1}", "standard input:1: Pod: metadata is required, with a name"),
        ("[" * 100_000, "standard input: nested too deep"),
        ("{kind: 3, apiVersion: v1}", "apiVersion and kind are required"),
        ("", "standard input: holds no Kubernetes object"),
        ("# nothing but a comment", "standard input: holds no Kubernetes object"),
        (
            "{kind: Pod, apiVersion: v1, metadata: {annotations: {weight: .inf}}}",
            'line 1: ".inf" is not a number of JSON',
        ),
        ("kind: Pod\nspec: [a\n", "standard input: not YAML: line 3: did not find expected ',' or ']', while parsing"),
        ("kind: Pod\nspec: a: b\n", "standard input: not YAML: line 2: mapping values are not allowed in this context"),
    ],
)
def test_bad_input_is_named(text: str, sentence: str) -> None:
    code, _, errors = review("-f", "-", stdin=text)
    assert code == 2
    assert sentence in errors


def test_aliases_that_unfold_without_end_are_refused() -> None:
    pairs = zip("abcdefg", "bcdefgh", strict=True)
    rows = "\n".join(f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]" for below, name in pairs)
    bomb = f"kind: Pod\napiVersion: v1\nmetadata: {{name: x}}\na: &a [1]\n{rows}\n"
    code, _, errors = review("-f", "-", stdin=bomb)
    assert code == 2
    assert "more than 1000000 values in one document" in errors


def test_a_quota_without_the_namespace_that_it_selects_is_reported() -> None:
    """The mistake would otherwise go unseen: a pod above the ceiling passes, and nobody knows why."""
    pod, beta = str(EXAMPLES / "refused" / "pod-above-ceiling.yaml"), str(EXAMPLES / "tenants" / "beta.yaml")
    code, _, errors = review("-f", pod, "--tenants", beta)
    assert code == 0
    assert errors.startswith("no tenant selects namespace team-beta, so no ceiling and no quota applies there.")
    code, _, errors = review("-f", pod, "--tenants", pod)
    assert (code, errors) == (2, f"{pod}: holds no TenantQuota and no Namespace\n")


DENY = "apiVersion: config.gpu-tiers.dev/v1alpha1\nkind: TierPolicy\nnamespacesWithoutTenant: Deny\n"


def test_a_namespace_of_no_tenant_is_treated_as_the_policy_has_it(tmp_path: Path) -> None:
    pod = str(EXAMPLES / "refused" / "pod-above-ceiling.yaml")
    alpha = (EXAMPLES / "tenants" / "alpha.yaml").read_text()
    tenants, policy = tmp_path / "tenants.yaml", tmp_path / "policy.yaml"
    tenants.write_text(alpha)
    policy.write_text(DENY)
    code, _, errors = review("-f", pod, "--tenants", str(tenants), "--policy", str(policy))
    assert code == 1
    assert errors == (
        "no tenant selects namespace team-beta, so pods with GPUs or a tier are refused there. If one should, give the "
        "Namespace, with its labels, to --tenants\n"
    )
    namespaces = (EXAMPLES / "tenants" / "00-namespaces.yaml").read_text()
    tenants.write_text(f"{alpha}---\n{namespaces.replace('tenant: beta', 'tenant: nobody')}")
    errors = review("-f", pod, "--tenants", str(tenants), "--policy", str(policy))[2]
    assert errors == "no tenant selects namespace team-beta, so pods with GPUs or a tier are refused there\n"


def test_several_documents_and_a_list_are_all_reviewed() -> None:
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: a, image: b}]}}"
    several = "\n---\n".join(
        (pod % "one", "", f"{{apiVersion: v1, kind: List, items: [{pod % 'two'}, {pod % 'three'}]}}")
    )
    assert [found["name"] for found in findings("-f", "-", stdin=several)] == ["one", "two", "three"]


def test_a_broken_tenant_is_named_with_its_file(tmp_path: Path) -> None:
    tenant = (EXAMPLES / "tenants" / "alpha.yaml").read_text()
    broken = tenant.replace("name: alpha", "name: gamma").replace("16", "many")
    (tmp_path / "tenants.yaml").write_text(f"{tenant}---\n{broken}")
    code, _, errors = review("-f", str(EXAMPLES / "pod-batch.yaml"), "--tenants", str(tmp_path))
    assert code == 2
    line = len(tenant.splitlines()) + 3
    assert errors.strip().startswith(f"{tmp_path / 'tenants.yaml'}:{line}: TenantQuota/gamma: spec.quotas[0].gpus:")


def test_a_broken_policy_is_bad_input(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: config.gpu-tiers.dev/v1alpha1\nkind: TierPolicy\ntires: []\n")
    code, _, errors = review("-f", str(EXAMPLES / "pod-batch.yaml"), "--policy", str(policy))
    assert code == 2
    assert "tires: there is no such field" in errors


def test_a_policy_file_beside_manifests_is_left_out() -> None:
    code, out, errors = review("-f", str(EXAMPLES), *WORLD)
    assert code == 1, "some of examples/refused/ is refused, as it should be"
    others = [line for line in errors.splitlines() if "/three-teams/tenants/" not in line]
    assert others == [], "the quotas of examples/three-teams/ name tiers of another policy"
    assert "TierPolicy" not in out
    assert review("-f", str(EXAMPLES / "policies"))[2].endswith("holds no Kubernetes object\n")
