"""One answer in each of its forms."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from webhook.cli.main import app
from webhook.cli.output import Answer, AnswerForm, Table, write
from webhook.readmodel.shown import Shown


class Pod(Shown, frozen=True):
    node_name: str
    gpus: str


TABLE = Table(("Name", "GPUs"), [("a|b", "2"), ("evil\x1b[2J\nname", "16")], "Pods")
ANSWER = Answer([Pod("node-1", "2")], (TABLE,), ("1 more is *pending*",))


def written(capsys: pytest.CaptureFixture[str], output: AnswerForm) -> str:
    write(ANSWER, output)
    return capsys.readouterr().out


def test_a_table_is_aligned_and_no_name_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    lines = written(capsys, AnswerForm.TABLE).splitlines()
    assert lines[:4] == ["Pods", "NAME            GPUS", "a|b             2", "evil [2J name   16"]
    assert lines[-1] == "1 more is *pending*"


def test_markdown_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(capsys, AnswerForm.MARKDOWN)
    assert "### Pods" in text
    assert "| a\\|b | 2 |" in text
    assert "1 more is \\*pending\\*" in text


def test_programs_read_the_names_that_kubernetes_would_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(written(capsys, AnswerForm.JSON)) == [{"nodeName": "node-1", "gpus": "2"}]
    assert yaml.safe_load(written(capsys, AnswerForm.YAML)) == [{"nodeName": "node-1", "gpus": "2"}]


def test_an_option_is_taken_as_kubectl_takes_it(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("{apiVersion: config.gpu-tiers.dev/v1alpha1, kind: TierPolicy, preset: four-tier}")
    for form in (["-o=json"], ["-ojson"], ["-o", "json"], ["--output=json"]):
        answer = CliRunner().invoke(app, ["posture", f"--policy={file}", *form])
        assert json.loads(answer.stdout)["mode"] == "Audit"
