"""Runs a page's commands as its reader would, and knows which of them ask a cluster."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from localcluster import Cluster
from localcluster.binaries import binaries, find
from localcluster.environment import SHORT_LIVED
from localcluster.versions import DEFAULT_KUBERNETES

from .markdown import ROOT, Block, Page

MINOR = os.environ.get("K8S") or DEFAULT_KUBERNETES
PROGRAMS = r"kubectl|helm|docker|git|pip|uv|python3?|gpu-tiers|kind|minikube|gcloud|aws|az|oc|argocd|flux"
COMMAND = re.compile(rf"^(?:\$ )?((?:{PROGRAMS}) .*)$", re.MULTILINE)
ENDS_WITH = re.compile(r"# ends with (\d+)")
_ASKS_A_CLUSTER = re.compile(
    r"^(kubectl|helm)\b|^gpu-tiers (lint|check|posture|usage|explain|why-pending)\b(?!.* --policy)"
)
ELSEWHERE = {
    "helm test gpu-tiers -n gpu-tiers": "tests/node/test_chart.py",
    "kubectl -n gpu-tiers logs -l app.kubernetes.io/name=gpu-tiers": "tests/node/release.py",
}
"""Commands that need containers, and the test on a real node that runs them."""


def lines(block: Block) -> list[str]:
    """The commands of a block; a backslash continues a line."""
    return [line for line in block.text.replace("\\\n", " ").splitlines() if line.strip()]


def asks_a_cluster(block: Block) -> bool:
    return any(_ASKS_A_CLUSTER.search(line) for line in lines(block))


def of_a_cluster(page: Page) -> Iterator[Block]:
    """The blocks of a page that are run on a cluster, in the page's order."""
    return (block for block in page.blocks("sh") if asks_a_cluster(block))


def shell(command: str, cluster: Cluster, *, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run it as the reader would: kubectl and helm on PATH, KUBECONFIG set, both outputs on one screen."""
    programs = [Path(sys.executable).parent, find(binaries(MINOR)["kubectl"]).parent]
    homes = {f"HELM_{kind}_HOME": str(cluster.folder / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    path = ":".join([*map(str, programs), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, **homes, **SHORT_LIVED, "PATH": path, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def run_as_printed(commands: list[str], cluster: Cluster, *, folder: Path = ROOT) -> dict[str, str]:
    """Run each; it ends with 0, or with what its comment says. Returns what each prints, by its words."""
    assert commands
    printed = {}
    for command in commands:
        said = ENDS_WITH.search(command)
        run = shell(command, cluster, folder=folder)
        printed[command.partition(" # ")[0].strip()] = run.stdout
        assert run.returncode == int(said[1] if said else 0), f"{command}\n{run.stdout}"
    return printed


def here(command: str) -> bool:
    """Return whether a command is run here: no `make`, whose cluster exists, and no setting of the reader's shell."""
    return not command.startswith(("make ", "export ")) and not any(command.startswith(each) for each in ELSEWHERE)


def linked_project(folder: Path) -> Path:
    """A folder for what commands write, with the project's folders that they read."""
    for name in ("charts", "docs", "examples"):
        (folder / name).symlink_to(ROOT / name)
    return folder
