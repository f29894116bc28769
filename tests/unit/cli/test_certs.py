"""`gpu-tiers certs`: makes what a webhook outside a cluster needs, and refuses what no client would accept."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from webhook.cli.main import app


def certs(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["certs", *arguments])
    return result.exit_code, result.output


def test_made_and_shown(tmp_path: Path) -> None:
    code, made = certs(
        "make", str(tmp_path / "tls"), "--dns-name", "gpu-tiers.gpu-tiers.svc", "--dns-name", "127.0.0.1"
    )
    assert code == 0
    assert "gpu-tiers.gpu-tiers.svc" in made
    assert certs("show", str(tmp_path / "tls"))[0] == 0


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    assert certs("make", str(tmp_path), "--dns-name", "a.example")[0] == 0
    code, said = certs("make", str(tmp_path), "--dns-name", "a.example")
    assert code == 2
    assert "exists already; --force makes a new CA" in said
    assert certs("make", str(tmp_path), "--dns-name", "a.example", "--force")[0] == 0


@pytest.mark.parametrize("name", ["", "not a name!!", "a" * 300, "ünï.de", "-x.example"])
def test_a_name_that_is_none(tmp_path: Path, name: str) -> None:
    code, said = certs("make", str(tmp_path), f"--dns-name={name}")
    assert code == 2
    assert "is neither a DNS name nor an address" in said
    assert not list(tmp_path.iterdir())


def test_a_folder_that_can_not_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert certs("make", str(tmp_path / "file" / "x"), "--dns-name", "a.example")[0] == 2
    assert certs("show", str(tmp_path / "missing"))[0] == 2
