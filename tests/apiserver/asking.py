"""Ask as a person does: with commands and a kubeconfig, on the page, and by events."""

import http.client
import json
from html import unescape
from pathlib import Path

import yaml
from click.testing import Result
from typer.testing import CliRunner

from webhook.cli.main import app

from .installed import Installed

ANSWERS = Path(__file__).parent / "answers"
SOME = "team-research"
"""As long as a test's namespace is called, so that columns are as wide."""


def run(installed: Installed, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, f"--kubeconfig={installed.cluster.kubeconfig}"])


def lint(installed: Installed, *arguments: str, kubeconfig: str | None = None) -> Result:
    return CliRunner().invoke(app, ["lint", *arguments, f"--kubeconfig={kubeconfig or installed.cluster.kubeconfig}"])


def ours(answer: Result, *names: str) -> list[str]:
    """The findings in a place that a test made: others share the cluster."""
    found = [each for each in json.loads(answer.stdout)["findings"] if any(name in each["where"] for name in names)]
    return [f"{each['severity']}: {each['id']}: {each['where']}: {each['what']}" for each in found]


def ids(answer: Result) -> set[str]:
    return {each["id"] for each in json.loads(answer.stdout)["findings"]}


def why(installed: Installed, namespace: str, what: str) -> str:
    return run(installed, "why-pending", what, f"--namespace={namespace}").stdout


def golden(name: str) -> str:
    return (ANSWERS / f"{name}.txt").read_text().rstrip("\n")


def expect(name: str, text: str) -> None:
    if not (ANSWERS / f"{name}.txt").exists():
        (ANSWERS / f"{name}.txt").write_text(text + "\n")
    assert text == golden(name)


def page(installed: Installed, port: int | None = None) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port or installed.address.page_port, timeout=10)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert answer.status == 200
    text = unescape(answer.read().decode())
    connection.close()
    return text


def kubeconfig_of(installed: Installed, account: str, namespace: str) -> Path:
    """Return the kubeconfig of a ServiceAccount."""
    file = installed.cluster.folder / f"{account}-{namespace}.kubeconfig"
    config = yaml.safe_load(installed.cluster.kubeconfig.read_text())
    (cluster,) = config["clusters"]
    config["users"] = [{"name": account, "user": {"token": installed.api.token(account, namespace)}}]
    config["contexts"] = [{"name": account, "context": {"cluster": cluster["name"], "user": account}}]
    file.write_text(yaml.safe_dump(config | {"current-context": account}))
    return file


def running(installed: Installed, namespace: str, name: str) -> bool:
    return str(installed.get(f"pod/{name}", namespace)["status"]["phase"]) == "Running"


def events(installed: Installed, namespace: str, reason: str) -> dict[str, str]:
    """The messages of a reason's events, by the name of the pod they are about."""
    found = installed.api.get("events", namespace, fieldSelector=f"reason={reason}")["items"]
    return {event["involvedObject"]["name"]: event["message"] for event in found}
