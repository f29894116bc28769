"""One answer in each of its forms."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml
from typer.testing import CliRunner

from webhook.cli.command import Answer, Form, Table, write
from webhook.cli.main import app
from webhook.report.shown import Shown


class Pod(Shown, frozen=True):
    node_name: str
    gpus: str


TABLE = Table(("Name", "GPUs"), [("a|b", "2"), ("evil\x1b[2J\nname", "16")], "Pods")
ANSWER = Answer([Pod("node-1", "2")], (TABLE,), ("1 more is *pending*",))


def written(capsys: pytest.CaptureFixture[str], output: Form) -> str:
    write(ANSWER, output)
    return capsys.readouterr().out


def test_a_table_is_aligned_and_no_name_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    lines = written(capsys, "table").splitlines()
    assert lines[:4] == ["Pods", "NAME            GPUS", "a|b             2", "evil [2J name   16"]
    assert lines[-1] == "1 more is *pending*"


def test_markdown_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(capsys, "markdown")
    assert "### Pods" in text
    assert "| a\\|b | 2 |" in text
    assert "1 more is \\*pending\\*" in text


def test_programs_read_the_names_that_kubernetes_would_use(capsys: pytest.CaptureFixture[str]) -> None:
    said = {"format": "gpu-tiers.dev/v1", "items": [{"nodeName": "node-1", "gpus": "2"}]}
    assert json.loads(written(capsys, "json")) == said
    assert yaml.safe_load(written(capsys, "yaml")) == said


def test_an_option_is_taken_as_kubectl_takes_it(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("{apiVersion: config.gpu-tiers.dev/v1alpha1, kind: TierPolicy, preset: four-tier}")
    for form in (["-o=json"], ["-ojson"], ["-o", "json"], ["--output=json"]):
        answer = CliRunner().invoke(app, ["posture", f"--policy={file}", *form])
        assert json.loads(answer.stdout)["mode"] == "Audit"


LONG = "training-of-the-very-long-name-that-somebody-took"
POLICY = {
    "apiVersion": "config.gpu-tiers.dev/v1alpha1",
    "kind": "TierPolicy",
    "preset": "four-tier",
    "tiers": [{"name": LONG, "value": 9}, {"name": "low", "value": 1, "preemptionPolicy": "Never"}],
    "workloadTypes": dict.fromkeys(("training", "serving", "batch", "interactive"), LONG),
    "defaultTier": "low",
}


def test_a_posture_is_drawn_in_a_file_that_needs_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(json.dumps(POLICY))
    answer = CliRunner().invoke(app, ["posture", f"--policy={file}", "-o", "svg"])
    drawn = ET.fromstring(answer.stdout)  # noqa: S314 - our own
    texts = [each.text for each in drawn.findall(".//{*}text")]
    assert texts == [f"{LONG}  9", "training, serving, batch, interactive", "low  1", "any other; evicts nobody"]
    assert drawn.findtext("{*}title") == f"{LONG} evicts low; low evicts nobody"
    assert int(drawn.attrib["width"]) > 8 * len(LONG)
    assert "prefers-color-scheme: dark" in answer.stdout
    assert "var(" not in answer.stdout, "not every program that shows an SVG knows variables"
