"""kubectl and a real API server refuse what `review` calls invalid, and take what it passes."""

import json

import pytest
import yaml

from tests.builders.invalid import INVALID, VALID

from .installed import Installed, Tree

pytestmark = pytest.mark.apiserver


def test_the_api_server_refuses_what_review_calls_invalid_and_takes_the_rest(
    installed: Installed, namespace: str
) -> None:
    said = {case.name: answer(installed, case.manifest, namespace) for case in INVALID}
    assert {name: text for name, text in said.items() if words(name) not in text} == {}
    taken = [answer(installed, manifest, namespace) for manifest in VALID]
    assert [text for text in taken if "Error" in text] == []


def words(name: str) -> str:
    return next(case.refused for case in INVALID if case.name == name)


def answer(installed: Installed, manifest: str, namespace: str) -> str:
    tree: Tree = yaml.safe_load(manifest)
    tree["metadata"].pop("namespace", None)
    command = ("create", "--dry-run=server", f"--namespace={namespace}", "-f", "-")
    return installed.cluster.kubectl(*command, input=json.dumps(tree), check=False).stderr
