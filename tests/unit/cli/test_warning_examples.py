"""The examples of warnings: each warning has one that triggers it, and nothing else."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from webhook.cli.main import app
from webhook.sentences.sentence import WARNINGS

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_every_warning_has_an_example() -> None:
    assert sorted(file.stem for file in (EXAMPLES / "warnings").iterdir()) == sorted(WARNINGS)


@pytest.mark.parametrize("warning", WARNINGS)
def test_an_example_is_admitted_with_its_warning_alone(warning: str) -> None:
    file = EXAMPLES / "warnings" / f"{warning}.yaml"
    asked = ["review", "-f", str(file), "--policy", str(EXAMPLES / "policies" / "four-tier.yaml"), "-o", "json"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0
    found = [text for line in result.stdout.splitlines() for text in json.loads(line)["warnings"]]
    assert [text.partition("]")[0] for text in found] == [f"[{warning}"]
