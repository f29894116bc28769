"""Runs the real helm on this repository's chart."""

import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from localcluster.environment import SHORT_LIVED

from . import renders

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "gpu-tiers"
Manifest = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """An answer of helm."""

    code: int
    stdout: str
    stderr: str


def helm(
    *arguments: str,
    home: Path,
    kubeconfig: Path | None = None,
    values: Manifest | None = None,
    program: str | None = None,
) -> Answer:
    """Run helm with a cache and configuration of its own under `home`; `values` go in as a file on stdin.

    Without a program it is that of the Python environment. What this chart renders without a cluster is remembered.
    """
    if values is not None:
        arguments = (*arguments, "--values=-")
    command, text = [program or _program(), *arguments], yaml.safe_dump(values or {})
    if arguments[0] != "template" or str(CHART) not in arguments or kubeconfig is not None:
        return _run(command, text, home, kubeconfig)
    file = renders.place(CHART, command, text)
    found = renders.read(file)
    if found is None:
        found = asdict(_run(command, text, home, kubeconfig))
        renders.write(file, found)
    return Answer(**found)


def _run(command: list[str], values: str, home: Path, kubeconfig: Path | None) -> Answer:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HELM_")}
    environment |= {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")} | SHORT_LIVED
    environment["KUBECONFIG"] = str(kubeconfig or home / "no-cluster")
    done = subprocess.run(
        command,
        env=environment,
        input=values,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def _program() -> str:
    bundled = Path(sys.executable).parent / "helm"
    found = str(bundled) if bundled.exists() else shutil.which("helm")
    assert found, "helm is missing: install the project with its dev dependencies"
    return found


class Chart(list[Manifest]):
    """The objects that `helm template` renders, to be asked by kind and name."""

    def of(self, kind: str) -> list[Manifest]:
        return [each for each in self if each["kind"] == kind]

    def one(self, kind: str, name: str | None = None) -> Manifest:
        found = [each for each in self.of(kind) if name in (None, each["metadata"]["name"])]
        assert len(found) == 1, f"{len(found)} objects of kind {kind} named {name}"
        return found[0]

    def entries(self, kind: str = "ValidatingWebhookConfiguration") -> dict[str, Manifest]:
        return {entry["name"]: entry for entry in self.one(kind)["webhooks"]}
