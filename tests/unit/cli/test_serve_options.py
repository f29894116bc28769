"""The options of `gpu-tiers serve` fill one struct, and contradictions are refused before anything starts."""

from pathlib import Path
from socket import gethostname

import pytest
from typer.testing import CliRunner

from webhook.cli import serve as command
from webhook.cli.main import app
from webhook.server import logs
from webhook.server.settings import Certificates, PrometheusServer, Settings


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Settings with which a server would have been started."""
    found: list[Settings] = []
    monkeypatch.setattr(command, "_serve_until_sigterm", found.append)
    monkeypatch.setattr(logs, "set_up", lambda *_: None)
    return found


def serve(*arguments: str, **environment: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["serve", *arguments], env=environment)
    return answer.exit_code, answer.stderr


def test_without_options_the_defaults_count(started: list[Settings]) -> None:
    assert serve()[0] == 0
    (settings,) = started
    assert settings == Settings()
    assert settings.replica == gethostname()
    assert settings.prometheus is None


def test_each_option_fills_its_field(started: list[Settings]) -> None:
    code, _ = serve(
        "--port=1", "--certificates=files", "--dns-name=a", "--dns-name=b", "--kubeconfig=/k", "--log-level=debug",
        "--prometheus-url=https://p", "--prometheus-label=a=b=c", "--prometheus-token-file=/t", POD_NAME="me",
    )  # fmt: skip
    assert code == 0
    (settings,) = started
    assert (settings.port, settings.certificates, settings.dns_names) == (1, Certificates.FILES, ["a", "b"])
    assert (settings.kubeconfig, settings.log_level, settings.replica) == (Path("/k"), "debug", "me")
    assert settings.prometheus == PrometheusServer("https://p", {"a": "b=c"}, Path("/t"), None)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("--port=0",), "--port"),
        (("--certificates=none",), "--certificates"),
        (("--prometheus-url=ftp://p",), "--prometheus-url"),
        (("--prometheus-url=http://p", "--prometheus-token-file=/t"), "--prometheus-url"),
        (("--prometheus-url=http://p", "--prometheus-label=a"), "--prometheus-label"),
    ],
)
def test_what_contradicts_is_a_mistake_of_that_option(
    started: list[Settings], arguments: tuple[str, ...], option: str
) -> None:
    code, errors = serve(*arguments)
    assert (code, started) == (2, [])
    assert option in errors
