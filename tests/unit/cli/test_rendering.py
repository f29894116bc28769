"""`gpu-tiers review --kustomize` and `--helm`: what those programs make is reviewed, and named after its source."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.unit.cli.reviewing import findings, review

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: a/b, command: [torchrun], resources: {limits: {nvidia.com/gpu: GPUS}}}]
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart with two templates, one of two documents."""
    folder = tmp_path / "train"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: train\nversion: 0.1.0\n")
    (folder / "values.yaml").write_text("gpus: 1\n")
    job = JOB.replace("NAME", "{{ .Release.Name }}-SUFFIX").replace("GPUS", "{{ .Values.gpus }}")
    (folder / "templates" / "a.yaml").write_text(job.replace("SUFFIX", "a") + "---\n" + job.replace("SUFFIX", "b"))
    (folder / "templates" / "c.yaml").write_text(job.replace("SUFFIX", "c"))
    return folder


@pytest.fixture
def helm(monkeypatch: pytest.MonkeyPatch) -> None:
    binaries = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{binaries}:{os.environ['PATH']}")
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed")


def program(folder: Path, name: str, script: str) -> None:
    """A program of that name, alone on the PATH."""
    file = folder / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.mark.usefixtures("helm")
def test_each_object_of_a_chart_is_said_to_come_from_its_template(chart: Path, tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("gpus: 4\n")
    found = findings("--helm", str(chart), "--values", str(tmp_path / "more.yaml"), "-n", "research")
    assert [(each["name"], each["file"], each["line"]) for each in found] == [
        ("train-a", f"{chart}/templates/a.yaml", None),
        ("train-b", f"{chart}/templates/a.yaml", None),
        ("train-c", f"{chart}/templates/c.yaml", None),
    ]
    assert {each["namespace"] for each in found} == {"research"}
    assert "nvidia.com/gpu: 4" not in str(found)
    assert f"Job default/train-c ({chart}/templates/c.yaml)\n" in review("--helm", str(chart))[1]


@pytest.mark.usefixtures("helm")
def test_what_helm_says_is_handed_on(chart: Path) -> None:
    (chart / "templates" / "c.yaml").write_text("{{ fail `no gpus given` }}")
    code, _, errors = review("--helm", str(chart))
    assert code == 2
    assert errors.startswith(f"--helm {chart}: helm template train {chart} ended with 1:\n")
    assert "no gpus given" in errors


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_a_kustomization_is_rendered_by_kubectl(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB.replace("NAME", "train").replace("GPUS", "1"))
    (tmp_path / "kustomization.yaml").write_text("namePrefix: prod-\nresources: [job.yaml]\n")
    (found,) = findings("--kustomize", str(tmp_path))
    assert (found["name"], found["tier"]) == ("prod-train", "gpu-training")
    assert found["file"] == f"{tmp_path}/kustomization.yaml"
    assert "describes" not in review("--kustomize", str(tmp_path))[1]


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (None, "--kustomize {folder}: kubectl is not on the PATH; install it, or pipe what it makes: "),
        ("echo one >&2; echo two >&2; exit 3", "ended with 3:\n  one\n  two\n"),
        ("true", "kubectl kustomize {folder}: holds no Kubernetes object"),
        ("echo 'a: ['", "kubectl kustomize {folder}: not YAML: "),
    ],
)
def test_where_it_can_not_be_rendered_it_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, sentence: str
) -> None:
    (tmp_path / "bin").mkdir()
    if script is not None:
        program(tmp_path, "kubectl", script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    code, _, errors = review("--kustomize", str(tmp_path))
    assert code == 2
    assert sentence.format(folder=tmp_path) in errors


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert review("--helm", str(tmp_path / "x"))[2] == f"--helm {tmp_path}/x: there is no such file or folder\n"
