"""`gpu-tiers policy check` as a person runs it before the policy goes anywhere."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.builders import policy_file
from tests.unit.cli.reviewing import EXAMPLES
from webhook.cli.main import app


def check(file: Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["policy", "check", str(file)])
    return result.exit_code, result.stdout, result.stderr


OMITTED = ". Fields that it omits are those of preset four-tier"


@pytest.mark.parametrize("preset", ["four-tier", "three-tier", "inference-first"])
def test_the_examples_are_good(preset: str) -> None:
    code, out, errors = check(EXAMPLES / "policies" / f"{preset}.yaml")
    assert (code, errors) == (0, "")
    assert f", tiers of preset {preset}: " in out
    assert out.count("\n") == 1


def test_a_good_file_is_summed_up(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    tiers = [{"name": "low", "value": 10}, {"name": "high", "value": 2000}]
    file.write_text(policy_file(tiers=tiers, defaultTier="low"))
    assert check(file) == (
        0,
        f"{file}: valid. Mode Enforce, tiers of its own: high 2000, low 10, default tier low{OMITTED}\n",
        "",
    )


def test_every_mistake_is_reported_with_its_field(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(policy_file(defaultTier="gold", workloadTypes={"batch": "silver"}))
    known = "known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive"
    code, out, errors = check(file)
    assert (code, out) == (2, "")
    assert errors.splitlines() == [
        f'{file}: defaultTier: unknown tier "gold"; {known}',
        f'{file}: workloadTypes.batch: unknown tier "silver"; {known}',
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    code, out, errors = check(tmp_path / "absent.yaml")
    assert (code, out) == (2, "")
    presets = "four-tier, inference-first, three-tier"
    assert errors.endswith(f"absent.yaml: there is no such file and no such preset; the presets are {presets}\n")


def test_a_preset_is_checked_by_its_name() -> None:
    code, out, errors = check(Path("three-tier"))
    assert (code, errors) == (0, "")
    assert out.startswith("three-tier: valid. Mode Audit, tiers of preset three-tier: critical 1000, ")
