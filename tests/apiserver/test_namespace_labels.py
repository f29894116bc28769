"""A label on a namespace that says nothing: told at `kubectl label`, in the namespace's events, by lint and audit."""

import json

import pytest

from localcluster import Result

from .asking import run
from .installed import Installed
from .test_tenant_warnings import reviews, warnings

pytestmark = pytest.mark.apiserver

MODE = (
    '[unknown-mode] label gpu-tiers.dev/mode: "Enfroce" is no mode, so the mode of the installation applies; '
    "did you mean Enforce?"
)
TIER = '[unknown-default-tier] label gpu-tiers.dev/default-tier: unknown tier "gpu-bacth"'


def label(installed: Installed, namespace: str, *labels: str) -> Result:
    return installed.cluster.kubectl("label", "namespace", namespace, "--overwrite", *labels)


def test_whoever_labels_a_namespace_reads_what_they_misspelt(installed: Installed, namespace: str) -> None:
    (mode,) = warnings(label(installed, namespace, "gpu-tiers.dev/mode=Enfroce"))
    assert mode == MODE
    both = warnings(label(installed, namespace, "gpu-tiers.dev/default-tier=gpu-bacth"))
    assert [each[: len(TIER)] for each in both] == [MODE[: len(TIER)], TIER]
    near = warnings(label(installed, namespace, "gpu-tier.dev/mode=Warn", "gpu-tiers.dev/mode-"))
    assert "[unknown-key] label gpu-tier.dev/mode is unknown and ignored; did you mean gpu-tiers.dev/mode?" in near
    right = ["gpu-tiers.dev/mode=Enforce", "gpu-tiers.dev/default-tier=gpu-batch", "gpu-tier.dev/mode-"]
    assert warnings(label(installed, namespace, *right)) == []


def test_a_namespace_is_made_with_its_mistake_and_a_warning(installed: Installed) -> None:
    metadata = {"name": "labelled", "labels": {"gpu-tiers.dev/mode": "Enfroce"}}
    tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    answer = installed.api.create(tree, dry_run=True)
    assert warnings(answer) == [MODE]


def test_nothing_else_of_a_namespace_is_asked_about(installed: Installed, namespace: str) -> None:
    label(installed, namespace, "gpu-tiers.dev/mode=Enforce")
    before = reviews(installed)
    label(installed, namespace, "team=a")
    installed.cluster.kubectl("annotate", "namespace", namespace, "example.com/owner=b")
    label(installed, namespace, "gpu-tiers.example.com/mode=x", "gpu-tiers.dev/mode-")
    assert reviews(installed) == before


def test_it_is_reported_once_in_the_namespaces_events_and_found_by_lint_and_audit(
    installed: Installed, namespace: str
) -> None:
    label(installed, namespace, "gpu-tiers.dev/mode=Enfroce")
    installed.eventually(lambda: events(installed, namespace) == [(MODE, 1)], "an event")
    label(installed, namespace, "team=a")
    for command in (["lint", "--fail-on=warning"], ["audit", "--fail-on=warning"], ["audit", "-n", namespace]):
        found = json.loads(run(installed, *command, "--output=json").stdout)["findings"]
        (mine,) = [each for each in found if each["where"] == f"Namespace/{namespace}"]
        assert (mine["id"], mine["severity"]) == ("namespace-label", "warning")
        assert mine["what"] == MODE.removeprefix("[unknown-mode] ")
    assert events(installed, namespace) == [(MODE, 1)]
    label(installed, namespace, "gpu-tiers.dev/mode=Enforce")
    left = json.loads(run(installed, "lint", "--output=json").stdout)["findings"]
    assert f"Namespace/{namespace}" not in {each["where"] for each in left}


def test_with_a_dead_webhook_a_namespace_is_labelled_all_the_same(installed: Installed, namespace: str) -> None:
    installed.kill()
    try:
        assert "labeled" in label(installed, namespace, "gpu-tiers.dev/mode=Enfroce").stdout
    finally:
        installed.restart()


def events(installed: Installed, namespace: str) -> list[tuple[str, int]]:
    found = installed.api.get("events", namespace, fieldSelector="reason=NamespaceLabel")
    return [(each["message"], each["count"]) for each in found["items"]]
