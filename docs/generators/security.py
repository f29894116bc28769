"""Writes the tables of docs/security.md: rights from the chart as helm renders it, attempts from their tests."""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from generators.evasions import evasions
from generators.tables import code, filled, table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
EVERYTHING = {
    "backstop": {"enabled": True},
    "policy": {
        "evictionCost": {"kueue": "Write", "volcano": "Write"},
        "kueue": {"workloadPriorityClasses": True},
        "preemption": {"dra": "On"},
        "resourceFlavors": [{"name": "h100", "nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}],
    },
}
"""The values with which the chart gives every right that it can give."""
MANY = 8


def security() -> str:
    """Return the page with new tables."""
    rights = table(("what", "may", "why"), [row for role in _roles() for row in _rows(role)])
    page = filled("rights", rights, PAGE.read_text(encoding="utf-8"))
    return filled("attempts", evasions(), page)


def _roles() -> Iterator[str]:
    """Yield the rules of each Role and ClusterRole as text, with the comments that say why a right is there."""
    helm = str(Path(sys.executable).with_name("helm"))
    command = [helm, "template", "gpu-tiers", "charts/gpu-tiers", "-n=gpu-tiers", "-s=templates/rbac.yaml", "-f=-"]
    run = subprocess.run(  # noqa: S603 - our own tool and chart
        command, cwd=ROOT, input=yaml.safe_dump(EVERYTHING), capture_output=True, text=True, check=True
    )
    for text in run.stdout.split("\n---\n"):
        if re.search(r"^kind: (Cluster)?Role$", text, re.MULTILINE):
            yield text.partition("\nrules:\n")[2]


def _rows(role: str) -> Iterator[tuple[str, str, str]]:
    """Yield a row for the rules with the same verbs and the same reason."""
    rows: dict[tuple[str, str], list[str]] = {}
    for why, rules in _explained(role):
        for rule in rules:
            rows.setdefault((code(", ".join(rule["verbs"])), why), []).append(_named(rule))
    for (verbs, why), named in rows.items():
        many = f"[the known kinds](workload-kinds.md), in {len(named)} API groups"
        yield many if len(named) > MANY else "; ".join(named), verbs, why


def _explained(role: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the rules below each comment. A rule without a comment has the one before it."""
    for part in re.split(r"^(?=#)", role, flags=re.MULTILINE):
        comment = " ".join(line.removeprefix("# ") for line in part.splitlines() if line.startswith("#"))
        yield comment or "The certificate that the webhook creates.", yaml.safe_load(part) or []


def _named(rule: dict[str, Any]) -> str:
    groups = ", ".join(_words(rule["apiGroups"])) or "core"
    only = f", only {', '.join(map(code, rule['resourceNames']))}" if "resourceNames" in rule else ""
    return f"{', '.join(map(code, rule['resources']))} of {groups}{only}"


def _words(groups: Iterable[str]) -> Iterator[str]:
    yield from (group for group in groups if group)
