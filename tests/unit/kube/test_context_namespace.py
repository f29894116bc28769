"""The namespace of a command that names none: that of the kubeconfig's context, as kubectl has it."""

from pathlib import Path

import pytest
import yaml

from webhook.kube.connection import context_namespace
from webhook.kube.errors import Unreachable


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    contexts = [
        {"name": "research", "context": {"cluster": "one", "user": "me", "namespace": "team-a"}},
        {"name": "admin", "context": {"cluster": "one", "user": "me"}},
    ]
    file = tmp_path / "config"
    cluster = {"name": "one", "cluster": {"server": "https://one.example"}}
    whole = {"clusters": [cluster], "users": [{"name": "me", "user": {}}]}
    file.write_text(yaml.safe_dump({**whole, "contexts": contexts, "current-context": "research"}))
    return file


def test_it_is_the_contexts_own_else_default(kubeconfig: Path) -> None:
    assert context_namespace(kubeconfig) == "team-a"
    assert context_namespace(kubeconfig, "research") == "team-a"
    assert context_namespace(kubeconfig, "admin") == "default"


def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path) -> None:
    word = tmp_path / "kubeconfig"
    word.write_text("production\n")
    with pytest.raises(Unreachable, match="kubeconfig is no kubeconfig: it should have clusters, users and contexts"):
        context_namespace(word)


def test_a_context_that_is_not_there_is_named(kubeconfig: Path, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match='no context "production"; it has research, admin'):
        context_namespace(kubeconfig, "production")
    with pytest.raises(Unreachable, match="there is no kubeconfig at"):
        context_namespace(tmp_path / "nowhere")
