"""The two commands of docs/break-glass.md, as they stand there, while the webhook is dead."""

import re
import shlex

import pytest

from .asking import GPU_POD, try_create, wait_until_gpu_pods_are
from .helm import ROOT
from .release import CONFIGURATION, Release

pytestmark = pytest.mark.apiserver

TEXT = (ROOT / "docs" / "break-glass.md").read_text()
END, RESTORE = re.findall(r"^(kubectl patch validatingwebhookconfiguration .*)$", TEXT, re.MULTILINE)


def run(release: Release, command: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "kubectl"
    release.cluster.kubectl(*arguments)


def test_one_command_ends_enforcement_and_one_restores_it(release: Release, namespace: str) -> None:
    release.install(mode="Enforce")
    wait_until_gpu_pods_are(release.cluster, refused=True)
    before = release.entries()

    run(release, END)
    wait_until_gpu_pods_are(release.cluster, refused=False)
    assert not try_create(release.cluster, namespace, GPU_POD).code
    ended = release.entries()
    assert {entry["failurePolicy"] for entry in ended.values()} == {"Ignore"}

    run(release, RESTORE)
    wait_until_gpu_pods_are(release.cluster, refused=True)
    assert release.entries() == before


def test_nothing_but_the_failure_policy_changes(release: Release) -> None:
    release.install(mode="Enforce")
    trusting = '[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Q0E="}]'
    release.cluster.kubectl("patch", "validatingwebhookconfiguration", CONFIGURATION, "--type=json", "-p", trusting)
    before = release.entries()
    run(release, END)
    after = release.entries()
    for entry in (*before.values(), *after.values()):
        entry["failurePolicy"] = ""
    assert after == before


@pytest.mark.parametrize("values", [{}, {"logLevel": "debug"}], ids=["the same values", "another value"])
def test_the_next_upgrade_enforces_again(release: Release, values: dict[str, str]) -> None:
    release.install(mode="Enforce")
    run(release, END)
    release.upgrade(mode="Enforce", **values)
    assert release.entries()["pods.validate.gpu-tiers.dev"]["failurePolicy"] == "Fail"


def test_the_notes_of_an_enforcing_release_carry_both_commands(release: Release) -> None:
    notes = release.install(mode="Enforce").stdout
    assert END in notes
    assert RESTORE in notes
