"""The README's commands, in its order, on a real API server; its answers are those that it shows.

Of a ```sh block each command is run but `make`, whose cluster is there, and the settings of the reader's shell.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from localcluster import Cluster
from localcluster.binaries import binaries, cache_folder, find
from localcluster.keeper import state
from localcluster.versions import DEFAULT_KUBERNETES, KUBERNETES

from .markdown import ROOT, page

pytestmark = pytest.mark.apiserver

README = page("README.md")
MINOR = os.environ.get("K8S") or DEFAULT_KUBERNETES
_AGE = re.compile(r"\s+\d+[smhd]\w*$")
_ENDS_WITH = re.compile(r"# ends with (\d+)")


def shell(command: str, cluster: Cluster) -> subprocess.CompletedProcess[str]:
    """Run it as the reader would: kubectl and helm on PATH, KUBECONFIG set, both outputs on one screen."""
    programs = [Path(sys.executable).parent, find(binaries(MINOR)["kubectl"]).parent]
    homes = {f"HELM_{kind}_HOME": str(cluster.folder / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    path = ":".join([*map(str, programs), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env={**os.environ, **homes, "PATH": path, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def commands(heading: str) -> list[str]:
    """The commands of the ```sh blocks under a heading; a backslash continues a line."""
    texts = [block.text.replace("\\\n", " ") for block in README.blocks("sh") if heading in block.headings]
    found = [line for text in texts for line in text.splitlines()]
    return [line for line in found if not line.startswith(("make ", "export "))]


def run_all(heading: str, cluster: Cluster) -> None:
    found = commands(heading)
    assert found
    for command in found:
        said = _ENDS_WITH.search(command)
        run = shell(command, cluster)
        assert run.returncode == int(said[1] if said else 0), f"{command}\n{run.stdout}"


def shown() -> list[tuple[str, str]]:
    """The console blocks of the README's first example: each command with the answer below it."""
    (block,) = (block for block in README.blocks("console") if "What a researcher reads" in block.headings)
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [(command, answer) for command, _, answer in (part.partition("\n") for part in parts)]


def ageless(text: str) -> list[str]:
    return [_AGE.sub("", line).rstrip() for line in text.splitlines()]


def test_a_researcher_reads_what_the_readme_shows(made_cluster: Cluster) -> None:
    assert len(shown()) == 4
    for command, answer in shown():
        assert ageless(shell(command, made_cluster).stdout) == ageless(answer)


def test_the_quick_start_on_this_machine(made_cluster: Cluster) -> None:
    run_all("On this machine", made_cluster)


def test_the_quick_start_with_helm(own_cluster: Cluster) -> None:
    run_all("On your own cluster, with Helm", own_cluster)


def test_the_kubectl_that_the_readme_names_is_the_one_that_make_cluster_builds() -> None:
    version = KUBERNETES[DEFAULT_KUBERNETES].version
    assert f"$HOME/.cache/gpu-tiers/bin/kubernetes-{version}" in README.text
    assert binaries(DEFAULT_KUBERNETES)["kubectl"].cached.parent == cache_folder() / "bin" / f"kubernetes-{version}"


def test_the_kubeconfig_that_the_readme_names_is_the_one_that_make_cluster_writes(
    made_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_TIERS_CACHE", str(tmp_path))
    written = state() / "control-plane" / made_cluster.kubeconfig.name
    assert f'export KUBECONFIG="$HOME/.cache/gpu-tiers/{written.relative_to(tmp_path)}"' in README.text
