"""`gpu-tiers check`: one word for the webhook of a cluster, and for each thing that it needs to work."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from installation.readiness import wait_for_webhook
from webhook.cli.main import app

from .asking import ids, kubeconfig_of
from .asking import lint as run_lint
from .installed import Installed

pytestmark = pytest.mark.apiserver


def check(installed: Installed, *arguments: str, kubeconfig: Path | None = None) -> Result:
    config = kubeconfig or installed.cluster.kubeconfig
    return CliRunner().invoke(app, ["check", "--output=json", *arguments, f"--kubeconfig={config}"])


def words(answer: Result) -> dict[str, str]:
    """The word of each line."""
    return {each["name"]: each["word"] for each in json.loads(answer.stdout)["checks"]}


def what(answer: Result, name: str) -> str:
    return str(next(each["what"] for each in json.loads(answer.stdout)["checks"] if each["name"] == name))


@contextmanager
def hanging(installed: Installed) -> Iterator[None]:
    """Yield a server that listens and never answers."""
    installed.process.popen.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        installed.process.popen.send_signal(signal.SIGCONT)
        assert check(installed, "--wait=3m").exit_code == 0


@pytest.mark.usefixtures("tenant")
def test_one_that_works_is_ok_in_every_line(installed: Installed, namespace: str) -> None:
    answer = check(installed, f"--namespace={namespace}", "--wait=1m")
    assert answer.exit_code == 0, answer.output
    assert set(words(answer).values()) == {"ok"}
    assert json.loads(answer.stdout)["word"] == "ok"
    assert what(answer, "webhook").startswith("answered a dry run in 0.")
    assert installed.published["digest"] in what(answer, "policy")
    assert installed.get("pods", namespace)["items"] == []


@pytest.mark.parametrize("mode", [pytest.param("Audit", marks=pytest.mark.release), "Warn"])
def test_where_the_api_server_goes_on_without_it_in_silence_it_is_marked_and_missed(
    installed: Installed, mode: str
) -> None:
    """There nothing is patched or refused, and a webhook that hangs costs each GPU pod the timeouts of both."""
    installed.upgrade(mode=mode)
    try:
        assert words(check(installed, "--wait=1m"))["webhook"] == "ok"
        with hanging(installed):
            output = what(check(installed), "webhook")
        assert output.endswith(
            "failurePolicy Ignore, and it waited for an answer: replicas hang, or the network blocks them"
        )
        seconds = output.removeprefix("mutate and validate: did not mark a dry run, which took ").partition(" s: ")[0]
        assert float(seconds) >= 9
    finally:
        installed.upgrade()
        wait_for_webhook(installed.cluster)


def test_one_that_hangs_is_found_by_check_and_by_lint(installed: Installed) -> None:
    with hanging(installed):
        answer = check(installed)
        assert answer.exit_code == 1, answer.output
        found = words(answer)
        assert (found["registered"], found["webhook"], found["replica"]) == ("ok", "failed", "unknown")
        assert "mutate and validate: did not mark a dry run, which took " in what(answer, "webhook")
        assert what(answer, "replica") == "can't be checked without an answer of the webhook"
        assert json.loads(answer.stdout)["wayOut"].endswith("docs/break-glass.md has the way out.")
        assert (found["leader"], found["ledger"], found["policy"]) == ("failed", "unknown", "unknown")
        lint = run_lint(installed, "--output=json")
        assert lint.exit_code == 1
        assert "webhook-silent" in ids(lint)


def test_it_waits_until_all_is_well(installed: Installed) -> None:
    command = [str(Path(sys.executable).parent / "gpu-tiers"), "check", "--wait=3m", "-o=json"]
    with hanging(installed):
        waiting = subprocess.Popen([*command, f"--kubeconfig={installed.cluster.kubeconfig}"], stdout=subprocess.PIPE)
        time.sleep(5)
        assert waiting.poll() is None, "it waits"
    output, _ = waiting.communicate(timeout=200)
    assert (waiting.returncode, json.loads(output)["word"]) == (0, "ok")


def test_when_the_time_is_over_it_says_what_fails(installed: Installed) -> None:
    stored = installed.get("validatingwebhookconfiguration/zz-gpu-tiers", "")
    installed.api.delete("validatingwebhookconfiguration/zz-gpu-tiers")
    try:
        answer = check(installed, "--wait=3s")
    finally:
        for field in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
            stored["metadata"].pop(field, None)
        installed.api.create(stored)
    assert answer.exit_code == 1
    assert what(answer, "registered").startswith("ValidatingWebhookConfiguration: gpu-tiers has none")
    needs = "the ValidatingWebhookConfiguration of gpu-tiers"
    assert what(answer, "webhook") == f"can't be checked without {needs}", "nobody asks it: it may be well"


RIGHTS = {
    "nothing": ([], dict.fromkeys(("registered", "webhook", "leader", "ledger", "policy", "replica"), "unknown")),
    "gpu-tiers-reader": (
        ["gpu-tiers-reader"],
        {"registered": "unknown", "webhook": "unknown", "leader": "ok", "ledger": "ok", "policy": "ok"},
    ),
    "the platform team's": (
        ["gpu-tiers-cluster-reader"],
        {"registered": "ok", "webhook": "unknown", "leader": "ok", "ledger": "ok", "policy": "ok"},
    ),
    "edit beside that": (
        ["gpu-tiers-cluster-reader", "edit"],
        dict.fromkeys(("registered", "webhook", "certificates", "leader", "ledger", "policy", "replica"), "ok"),
    ),
}


@pytest.mark.usefixtures("tenant")
@pytest.mark.parametrize(("roles", "output"), RIGHTS.values(), ids=RIGHTS)
def test_what_a_person_may_not_read_is_named_and_never_called_well(
    installed: Installed, namespace: str, roles: list[str], output: dict[str, str]
) -> None:
    name = f"check-{namespace}"
    installed.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ada"}}, namespace)
    for role in roles:
        installed.bind(f"{name}-{role}", role, "ada", namespace, everywhere=True)
    try:
        config = kubeconfig_of(installed, "ada", namespace)
        answer = check(installed, f"--namespace={namespace}", "--wait=30s", kubeconfig=config)
    finally:
        for role in roles:
            installed.api.delete(f"clusterrolebinding/{name}-{role}")
    found = words(answer)
    assert {line: found[line] for line in output} == output
    assert answer.exit_code == (3 if "unknown" in found.values() else 0)
    for line, word in found.items():
        if word == "unknown":
            assert what(answer, line).startswith("can't be checked without "), line


def test_a_namespace_that_is_left_out_or_is_not_there(installed: Installed) -> None:
    assert what(check(installed, "--namespace=kube-system"), "webhook").endswith("name one with --namespace")
    answer = check(installed, "--namespace=nowhere")
    assert (answer.exit_code, answer.stderr) == (2, "there is no namespace nowhere\n")
    wrong = check(installed, "--wait=soon")
    assert (wrong.exit_code, '"soon" is not a duration; write 90s, 3m or 1h' in wrong.stderr) == (2, True)
