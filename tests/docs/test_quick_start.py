"""The commands of the README and of every page, in their order, on a real API server; the README's answers are real.

Of a ```sh block each command is run but `make`, whose cluster is there, and the settings of the reader's shell.
"""

import re
from pathlib import Path

import pytest

from localcluster import Cluster
from localcluster.binaries import binaries, cache_folder
from localcluster.keeper import state
from localcluster.versions import DEFAULT_KUBERNETES, KUBERNETES

from .markdown import page
from .shell import here, lines, linked_project, of_a_cluster, run_as_printed, shell

pytestmark = pytest.mark.apiserver

README = page("README.md")
WHERE_IT_RUNS = (
    "docs/break-glass.md",
    "docs/ledger.md",
    "docs/lint.md",
    "docs/modes.md",
    "docs/operations.md",
    "docs/quota.md",
    "docs/troubleshooting.md",
    "examples/README.md",
)
"""Pages for a reader whose cluster has gpu-tiers. Of operations only what no helm does: `make cluster` runs no pods."""
ON_A_CLUSTER_OF_YOUR_OWN = ("docs/migration.md", "docs/operations.md")
"""Pages that install it, change the release and take it away, in this order."""
_AGE = re.compile(r"\s+\d+[smhd]\w*$")


def commands(heading: str) -> list[str]:
    """The README's commands under a heading."""
    return [line for block in README.blocks("sh") if heading in block.headings for line in lines(block) if here(line)]


def of_page(name: str, *, by_helm: bool | None = None) -> list[str]:
    """The commands of a page for a cluster: all, or of those sections alone in which helm is used or isn't."""
    blocks = [block for block in of_a_cluster(page(name)) if by_helm in {None, block.headings in helms(name)}]
    return [line for block in blocks for line in lines(block) if here(line)]


def helms(name: str) -> set[tuple[str, ...]]:
    """The sections of a page in which helm is used, or what its release has is changed."""
    blocks = of_a_cluster(page(name))
    return {block.headings for block in blocks if re.search(r"^helm |secret gpu-tiers-tls", block.text, re.MULTILINE)}


def shown() -> list[tuple[str, str]]:
    """The console blocks of the README's first example: each command with the answer below it."""
    (block,) = (block for block in README.blocks("console") if "What a researcher reads" in block.headings)
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [(command, answer) for command, _, answer in (part.partition("\n") for part in parts)]


def ageless(text: str) -> list[str]:
    return [_AGE.sub("", line).rstrip() for line in text.splitlines()]


def test_a_researcher_reads_what_the_readme_shows(made_cluster: Cluster) -> None:
    assert len(shown()) == 3
    for command, answer in shown():
        assert ageless(shell(command, made_cluster).stdout) == ageless(answer)


def test_the_quick_start_on_this_machine_ends_with_a_refusal_and_its_explanation(made_cluster: Cluster) -> None:
    printed = run_as_printed(commands("On this machine"), made_cluster)
    assert printed["kubectl apply --dry-run=server -f examples/refused/"].count("denied the request") == 5
    assert "none of its pods can start now" in printed["kubectl apply -f examples/job-training.yaml"]
    why = printed["gpu-tiers why-pending job/train-ranker -n team-alpha"]
    assert "Its pods are refused at admission: exceeded quota: tenant alpha: gpu-training is at 6 of 6 GPUs; " in why
    assert re.search("It (tries again by itself|may try again)", why), why
    usage = printed["gpu-tiers usage alpha"]  # used or still reserved: none is free
    assert re.search(r"alpha +gpu-training +\S+ +\d +\d +\d +\d +6 +0", usage), usage


@pytest.mark.parametrize("name", WHERE_IT_RUNS)
def test_the_commands_of_a_page_where_gpu_tiers_runs(name: str, made_cluster: Cluster, tmp_path: Path) -> None:
    run_as_printed(of_page(name, by_helm=False), made_cluster, folder=linked_project(tmp_path))


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
