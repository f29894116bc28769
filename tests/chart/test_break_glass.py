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


def test_one_command_ends_enforcement_and_one_restores_it(enforced: Release, namespace: str) -> None:
    before = enforced.entries()

    run(enforced, END)
    wait_until_gpu_pods_are(enforced.cluster, refused=False)
    assert not try_create(enforced.cluster, namespace, GPU_POD).code
    ended = enforced.entries()
    assert {entry["failurePolicy"] for entry in ended.values()} == {"Ignore"}

    run(enforced, RESTORE)
    wait_until_gpu_pods_are(enforced.cluster, refused=True)
    assert enforced.entries() == before


def test_nothing_but_the_failure_policy_changes(enforced: Release) -> None:
    trusting = '[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Q0E="}]'
    enforced.cluster.kubectl("patch", "validatingwebhookconfiguration", CONFIGURATION, "--type=json", "-p", trusting)
    before = enforced.entries()
    run(enforced, END)
    after = enforced.entries()
    for entry in (*before.values(), *after.values()):
        entry["failurePolicy"] = ""
    assert after == before


@pytest.mark.parametrize("values", [{}, {"logLevel": "debug"}], ids=["the same values", "another value"])
def test_the_next_upgrade_enforces_again_and_its_notes_carry_both_commands(
    enforced: Release, values: dict[str, str]
) -> None:
    run(enforced, END)
    notes = enforced.upgrade(mode="Enforce", **values).stdout
    assert enforced.entries()["pods.validate.gpu-tiers.dev"]["failurePolicy"] == "Fail"
    assert END in notes
    assert RESTORE in notes
