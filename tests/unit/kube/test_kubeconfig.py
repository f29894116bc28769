"""The kubeconfig as kubectl has it: the namespace of its context, several files, and what is wrong with it."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.kube.client import Client
from webhook.kube.errors import Unreachable
from webhook.kube.kubeconfig import context_namespace


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


def written(file: Path, cluster: dict[str, Any], user: Any, *, name: str = "me") -> Path:
    """A kubeconfig whose context names the user "me"; `name` is the user's that it has."""
    whole = {
        "clusters": [{"name": "one", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "research", "context": {"cluster": "one", "user": "me"}}],
        "current-context": "research",
    }
    file.write_text(yaml.safe_dump(whole))
    return file


async def refused(file: Path) -> str:
    """Return the error that a request to a cluster raises."""
    with pytest.raises(Unreachable) as error:
        await Client.connect(file)
    return str(error.value)


SERVER = {"server": "https://one.example"}


async def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config"
    assert 'names the user "me", which the kubeconfig lacks' in await refused(written(file, SERVER, {}, name="you"))
    assert 'the cluster "one" of the kubeconfig has no server' in await refused(written(file, {}, {}))
    gone = str(tmp_path / "ca.crt")
    sentence = await refused(written(file, {**SERVER, "certificate-authority": gone}, {}))
    assert sentence.endswith(f"the kubeconfig names a file that is not there: {gone}")
    assert (await refused(written(file, SERVER, {"tokenFile": gone}))).endswith(f"{gone}: No such file or directory")
    assert (await refused(tmp_path)).endswith(f"{tmp_path}: Is a directory")
    file.write_bytes(b"clusters: \xff")
    assert (await refused(file)).endswith(f"{file} is no kubeconfig: it is no text in UTF-8")
    file.write_text("")
    assert (await refused(file)).endswith(f"{file} is empty")
    file.write_text("clusters: [one]")
    assert (await refused(file)).endswith(f"{file} is no kubeconfig: it should have clusters, users and contexts")
    file.write_text("contexts: []")
    assert (await refused(file)).endswith("the kubeconfig has no current context; it has none")


async def test_of_several_files_the_first_counts_and_an_empty_one_is_passed_over(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty, other = tmp_path / "empty", written(tmp_path / "other", SERVER, {"token": "another"})
    empty.write_text("")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (empty, tmp_path / "gone", kubeconfig, other))))
    assert context_namespace() == "team-a"
    await (await Client.connect()).close()


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A credential plugin whose login has expired."""
    file = tmp_path / "foo-login"
    file.write_text("#!/bin/sh\necho \"login expired, run 'foo login'\" >&2\nexit 1\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


async def test_a_credential_plugin_that_fails_is_reported_in_its_own_words(
    plugin: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def of(command: str) -> dict[str, Any]:
        return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command}}

    sentence = await refused(written(tmp_path / "config", SERVER, of(str(plugin))))
    assert sentence.endswith(f"the credential plugin \"{plugin}\" gives no login: login expired, run 'foo login'")
    sentence = await refused(written(tmp_path / "config", SERVER, of("no-such-login")))
    assert sentence.endswith("gives no login: No such file or directory: 'no-such-login'")
    assert capfd.readouterr().err == ""
