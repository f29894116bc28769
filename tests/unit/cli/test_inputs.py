"""The inputs of `gpu-tiers review`: files and folders by name, and a repository with more in it than objects."""

import gzip
import json
from pathlib import Path

import pytest
import yaml

from tests.builders import a_pod
from tests.unit.cli.reviewing import EXAMPLES, WORLD, findings, review

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: a, image: b}]}\n"
GPU_POD = POD.replace("image: b", "image: b, resources: {limits: {nvidia.com/gpu: 1}}")
TEMPLATE = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Release.Name }}\n"
TO_RENDER = 'a template, by its "{{"; review what it makes (of a Helm chart with --helm)'


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name.replace('__', '/')}.yaml").write_text(text)


def test_files_folders_and_standard_input_stand_beside_one_another(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    write(tmp_path, deploy__a=POD % "a", job=POD % "job", other=POD % "other")
    named = (str(tmp_path / "deploy"), str(tmp_path / "job.yaml"), "-", "-f", str(tmp_path / "other.yaml"))
    assert [found["name"] for found in findings(*named, stdin=POD % "piped")] == ["a", "job", "piped", "other"]


def test_without_anything_to_review_it_says_what_it_takes() -> None:
    code, _, errors = review()
    assert (code, errors) == (
        2,
        (
            "nothing to review: name files or folders, - for standard input, or something to render with --kustomize "
            "or --helm\n"
        ),
    )
    assert review("--values", "x.yaml", "-")[2] == "--values: goes with --helm, which is missing\n"


def test_each_answer_has_its_file_and_its_line(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    item = "    apiVersion: v1\n    kind: Pod\n    metadata: {name: %s}\n"
    inner = (
        "  - apiVersion: v1\n    kind: List\n    items:\n    - {apiVersion: v1, kind: Pod, metadata: {name: deep}}\n"
    )
    listed = "apiVersion: v1\nkind: List\nitems:\n  -\n" + item % "in-list" + inner
    file.write_text("# a comment\n" + POD % "first" + "---\n# another\n\n" + POD % "second" + "---\n" + listed)
    found = findings(str(file))
    assert [(each["name"], each["line"]) for each in found] == [
        ("first", 2), ("second", 9), ("in-list", 18), ("deep", 24),
    ]  # fmt: skip
    assert {each["file"] for each in found} == {str(file)}
    assert f"Pod default/second ({file}:9)\n" in review(str(file))[1]


def test_a_list_as_the_api_server_gives_it_names_the_kind_once() -> None:
    pods = '{"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [{"metadata": {"name": "a"}, "spec": {}}]}'
    assert [(found["kind"], found["name"]) for found in findings("-", stdin=pods)] == [("Pod", "a")]


def test_what_is_no_object_is_named_and_left_out_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    write(
        tmp_path,
        pod=POD % "a",
        Chart="apiVersion: v2\nname: web\n",
        values="replicas: 1\n",
        kustomization="resources: [pod.yaml]\n",
        templates__job=TEMPLATE,
        page="<!DOCTYPE html>\n<html><body>404: not found</body>\n",
        schema='{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}',
        ci="stages: [test]\ntest:\n  script: !reference [.setup, script]\n",
        kind="apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster\nnodes: []\n",
        mixed=POD % "b" + "---\nreplicas: 3\n",
        skeleton=POD % '"{{ cookiecutter.name }}"',
    )
    (tmp_path / "packed.yaml").write_bytes(gzip.compress(b"kind: Pod"))
    code, out, errors = review(str(tmp_path))
    assert (code, errors) == (0, "")
    assert out.rpartition("left alone\n")[2].splitlines() == [
        "11 left out:",
        f"  {tmp_path}/Chart.yaml:1: describes a Helm chart; review what it makes with --helm",
        f"  {tmp_path}/ci.yaml:1: not a Kubernetes object: apiVersion and kind are required",
        f"  {tmp_path}/kind.yaml:1: Cluster: metadata is required, with a name",
        f"  {tmp_path}/kustomization.yaml:1: a kustomization; review what it makes with --kustomize",
        f"  {tmp_path}/mixed.yaml:6: not a Kubernetes object: apiVersion and kind are required",
        f"  {tmp_path}/packed.yaml: gzip, no text",
        f"  {tmp_path}/page.yaml: HTML or XML",
        f"  {tmp_path}/schema.yaml:1: a JSON schema",
        f"  {tmp_path}/skeleton.yaml:1: {TO_RENDER}",
        f"  {tmp_path}/templates/job.yaml: {TO_RENDER}",
        f"  {tmp_path}/values.yaml:1: values of a Helm chart",
    ]
    assert review(str(tmp_path), "-o", "json")[2].count("left out: ") == 11


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("values.yaml", "replicas: 1\n", "{file}:1: values of a Helm chart"),
        ("job.yaml", TEMPLATE, "{file}: not YAML: "),
        ("page.json", "<html>", "{file}:1: not a Kubernetes object"),
    ],
)
def test_a_file_that_is_named_has_to_hold_objects(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    code, _, errors = review(str(file))
    assert code == 2
    assert errors.startswith(sentence.format(file=file))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("apiVersion: v1\nkind: Pod\nmetadata:\n name: a\n  labels: {}\n", "not YAML: "),
        ("apiVersion: batch/v1\nkind: Job\nspec: {}\n", "Job: metadata is required, with a name"),
    ],
)
def test_a_broken_object_is_named_and_the_rest_is_reviewed(tmp_path: Path, text: str, sentence: str) -> None:
    write(tmp_path, good=POD % "a", pod=text)
    code, out, errors = review("-f", str(tmp_path))
    assert (code, errors) == (2, "")
    assert out.startswith("Pod default/a")
    _, named = out.split("\n1 broken:\n")
    assert named.startswith(f"  {tmp_path}/pod.yaml:")
    assert sentence in named


def test_what_is_broken_is_reported_in_every_form(tmp_path: Path) -> None:
    write(tmp_path, good=POD % "a", pod="apiVersion: v1\nkind: Pod\nmetadata: [\n")
    code, out, errors = review(str(tmp_path), "-o", "json")
    assert (code, len(out.splitlines())) == (2, 1)
    assert errors.startswith(f"broken: {tmp_path}/pod.yaml: not YAML: ")
    code, out, _ = review(str(tmp_path), "-o", "sarif")
    assert (code, json.loads(out)["runs"][0]["invocations"][0]["executionSuccessful"]) == (2, False)
    code, out, _ = review(str(tmp_path), "-o", "junit")
    assert code == 2
    assert f"broken: {tmp_path}/pod.yaml" in out


def test_of_a_file_with_several_documents_only_the_broken_one_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, pods=f"{POD % 'a'}\n---\napiVersion: batch/v1\nkind: Job\nspec: {{}}\n---\n{POD % 'b'}")
    code, out, _ = review(str(tmp_path))
    assert code == 2
    assert "Pod default/a" in out
    assert "Pod default/b" in out
    assert "Job: metadata is required, with a name" in out


def test_tenants_are_read_whole_or_not_at_all(tmp_path: Path) -> None:
    """A review against half of the quotas would pass what is refused."""
    write(tmp_path, tenant="kind: TenantQuota\napiVersion: gpu-tiers.dev/v1alpha1\nspec: {}\n")
    code, out, _ = review(str(EXAMPLES / "pod-batch.yaml"), "--tenants", str(tmp_path))
    assert (code, out) == (2, "")


def test_a_key_that_is_written_twice_is_taken_as_kubectl_takes_it(tmp_path: Path) -> None:
    first = a_pod("chat").of_tier("gpu-batch").asking().json()
    text = yaml.safe_dump(first).replace("labels:\n", "labels:\n    gpu-tiers.dev/tier: gpu-training\n")
    write(tmp_path, both=f"{POD % 'other'}\n---\n{text}")
    code, out, errors = review(str(tmp_path), "-o", "json")
    other, found = (json.loads(line) for line in out.splitlines())
    assert (code, errors, found["tier"], other["warnings"]) == (0, "", "gpu-batch", [])
    line = 1 + next(n for n, each in enumerate(f"{POD % 'other'}\n---\n{text}".splitlines()) if "gpu-batch" in each)
    assert found["warnings"] == [f'"gpu-tiers.dev/tier" is written twice, again in line {line}; kubectl takes the last']


def test_a_folder_with_nothing_else_says_what_it_holds(tmp_path: Path) -> None:
    write(tmp_path, **{f"v{number}": "a: 1\n" for number in range(7)})
    code, _, errors = review(str(tmp_path))
    assert code == 2
    assert errors.startswith(f"{tmp_path}: holds no Kubernetes object\n  {tmp_path}/v0.yaml:1: not a Kubernetes object")
    assert errors.endswith("\n  and 2 more\n")


def test_only_filters_what_is_shown_and_nothing_else() -> None:
    refused = ("-f", str(EXAMPLES / "refused"), str(EXAMPLES / "pod-batch.yaml"), *WORLD)
    code, out, _ = review(*refused, "--only", "refused")
    assert code == 1
    assert "Pod team-alpha/transcribe" not in out
    assert "  refused: " in out
    assert "6 objects: 2 get a tier, 4 refused" in out
    assert review(*refused, "--only", "warned")[0] == 1
    assert all(found["warnings"] for found in findings(*refused, "--only", "warned"))
    both = findings(*refused, "--only", "warned", "--only", "refused")
    assert all(found["warnings"] or not found["allowed"] for found in both)


def test_a_namespace_is_that_of_objects_that_name_none_and_no_others() -> None:
    """kubectl's --namespace means the same."""
    found = findings("-", "-n", "team-alpha", *WORLD, stdin=GPU_POD % "a")
    assert [each["namespace"] for each in found] == ["team-alpha"]
    other = (GPU_POD % "b").replace("name: b}", "name: b, namespace: team-beta}")
    code, _, said = review("-", "-n", "team-alpha", *WORLD, stdin=other)
    assert (code, 'Pod/b is in namespace "team-beta", and --namespace says "team-alpha"' in said) == (2, True)
