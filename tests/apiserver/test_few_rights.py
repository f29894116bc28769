"""A command with few rights answers less, and nothing else: each answer is compared with an administrator's."""

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from localcluster.for_tests import announce
from webhook.cli.main import app

from .asking import kubeconfig_of, running
from .conftest import new_namespace
from .installed import Installed, gpu_job, gpu_pod

pytestmark = pytest.mark.apiserver

RIGHTS = {
    "none": ((), ()),
    "edit": (("edit",), ()),
    "edit and reader": (("edit",), ("gpu-tiers-reader",)),
    "view and reader": (("view",), ("gpu-tiers-reader",)),
    "view everywhere": ((), ("view",)),
    "cluster-reader": ((), ("gpu-tiers-cluster-reader",)),
}
"""ClusterRoles bound in the namespace, and in the whole cluster."""

MATRIX = [
    each if each in ("none", "edit and reader") else pytest.param(each, marks=pytest.mark.release) for each in RIGHTS
]
"""The two whose answers are written down, in each run; the others before a release."""

COMMANDS = {
    "explain a pod": ("explain", "notebook"),
    "explain a Job": ("explain", "job/train"),
    "explain a Deployment": ("explain", "deploy/web"),
    "why-pending of a pod": ("why-pending", "notebook"),
    "why-pending of a Deployment": ("why-pending", "deploy/web"),
    "audit of a namespace": ("audit",),
    "policy diff": ("policy", "diff", "three-tier"),
    "audit of all": ("audit",),
    "lint": ("lint",),
    "posture": ("posture",),
    "usage": ("usage",),
}
OF_THE_CLUSTER = ("audit of all", "lint", "posture", "usage")

ANSWERED = {  # what a researcher has: each answer, and what is missing in it
    "explain a pod": "same",
    "explain a Job": "same",
    "explain a Deployment": "same",
    "why-pending of a pod": "less",
    "why-pending of a Deployment": "same",
    "audit of a namespace": "less",
    "policy diff": "less",
    "audit of all": "asks for rights",
    "lint": "less",
    "posture": "same",
    "usage": "same",
}

OF_A_PART = ("No workload that could be read", "Nothing that could be read")
UNSAID = ("ClusterRole ", "not checked: ", "Nothing found by ", *OF_A_PART)
UNKNOWN = " is unknown: you lack the right to "
"""Sentences on what is unknown."""
ASK = "Your platform team may read it; ask them to run: "
SHORT = ("on one node; it starts by itself when there is room.", " accepts it.", " accept it.")
"""What stands there for those who may read less: whom to ask, and what the scheduler alone says, or the nodes."""
OF_THE_MOMENT = ("since", "pending", "last", "triesAgain", "times", "unread", "checked", "notChecked", "notes")


Whole = dict[str, tuple[set[str], Any]]
"""What an administrator is told by each command: its lines, and what programs read."""


@pytest.fixture(scope="module")
def research(installed: Installed) -> Iterator[str]:
    """A namespace in which a notebook waits for GPUs that another namespace holds, and a Deployment is over quota."""
    with new_namespace(installed.cluster) as namespace, new_namespace(installed.cluster) as other:
        node = f"node-{namespace}"
        installed.cluster.add_node(node, gpus=4)
        rows = [{"tier": "gpu-training", "gpus": "4"}, {"gpus": "6"}]
        with installed.tenant_for(namespace, namespace, quotas=rows), installed.tenant_for(other, other):
            installed.create(gpu_pod("scavenger", 4, tier="gpu-batch", node=node), other)
            installed.eventually(lambda: running(installed, other, "scavenger"), "a full node")
            installed.create(gpu_pod("notebook", 1, tier="gpu-interactive", node=node), namespace)
            installed.create(gpu_job("train", 4), namespace)
            installed.create(DEPLOYMENT, namespace)
            installed.eventually(
                lambda: installed.usage(namespace) == "gpu-training 4/4, total 5/6", "the quota is used"
            )
            status = lambda: installed.get(f"tenantquota/{namespace}", "")["status"]  # noqa: E731
            installed.eventually(
                lambda: bool(status().get("pending", {}).get("pods")), "the pods without a node, counted"
            )
            waits = ("why-pending", "deploy/web", f"--namespace={namespace}")
            admin = installed.cluster.kubeconfig
            installed.eventually(lambda: "refused at admission" in asked(Path(admin), *waits).stdout, "the refusal")
            yield namespace
        installed.api.delete(f"node/{node}")


@pytest.fixture(scope="module")
def whole(installed: Installed, research: str) -> Whole:
    """Asked once about the namespace, when those of earlier tests are gone: nothing changes then but the moment."""
    installed.wait_for_earlier_tests()
    admin = Path(installed.cluster.kubeconfig)
    return {name: answer_of(admin, in_namespace(name, research)) for name in COMMANDS if name not in OF_THE_CLUSTER}


def in_namespace(name: str, namespace: str) -> tuple[str, ...]:
    return (*COMMANDS[name], *(() if name in OF_THE_CLUSTER else (f"--namespace={namespace}",)))


TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": gpu_pod("web", 4)["spec"]}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"gpu-tiers.dev/tier": "gpu-serving"}},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}


def asked(config: Path, *command: str) -> Any:
    return CliRunner().invoke(app, [*command, f"--kubeconfig={config}"])


@contextmanager
def somebody(installed: Installed, namespace: str, rights: str) -> Iterator[Path]:
    """The kubeconfig of somebody with these rights."""
    name = f"{re.sub(r'[^a-z]', '-', rights)}-{uuid.uuid4().hex[:4]}"
    installed.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}, namespace)
    home, everywhere = RIGHTS[rights]
    for role in home:
        installed.bind(f"{name}-{role}", role, name, namespace)
    bindings = [f"{name}-{role}-{namespace}" for role in everywhere]
    for binding, role in zip(bindings, everywhere, strict=True):
        installed.bind(binding, role, name, namespace, everywhere=True)
    try:
        yield kubeconfig_of(installed, name, namespace)
    finally:
        for binding in bindings:
            installed.api.delete(f"clusterrolebinding/{binding}")


def said(text: str) -> set[str]:
    """Return its lines, whatever the widths of columns."""
    return {" ".join(line.split()) for line in at_any_time(text).splitlines() if line.strip()}


def at_any_time(text: str) -> str:
    """Return the text without the numbers of the moment."""
    text = text.replace("It may try again at any moment.", "It tries again by itself, within 1 second or so.")
    return re.sub(
        r"\d+ (second|minute)s?", "20 seconds", re.sub(r"refused (once,|\d+ times, the last time)", "refused", text)
    )


def untrue(less: Any, whole: Any, place: str = "") -> list[str]:
    """Return where an answer says something that the complete one doesn't."""
    if less in (None, "", [], {}):
        return []
    if isinstance(less, dict) and isinstance(whole, dict):
        keys = [key for key in less if key not in OF_THE_MOMENT]
        return [each for key in keys for each in untrue(less[key], whole.get(key), f"{place}.{key}")]
    if isinstance(less, list) and isinstance(whole, list):
        return [f"{place}: {each}" for each in less if all(untrue(each, other, place) for other in whole)]
    same = at_any_time(str(less)) == at_any_time(str(whole))
    return [] if same else [f"{place}: {less!r} instead of {whole!r}"]


def answer_of(config: Path, command: tuple[str, ...]) -> tuple[set[str], Any]:
    """Return the text and the JSON of an answer."""
    return said(asked(config, *command).stdout), json.loads(asked(config, *command, "--output=json").stdout)


def outcome(config: Path, command: tuple[str, ...], whole: tuple[set[str], Any]) -> tuple[str, list[str]]:
    """Return the outcome of a command, and what is untrue in it."""
    text = asked(config, *command)
    if text.exit_code == 2:
        return "asks for rights", [] if "ClusterRole gpu-tiers-" in text.stderr else [text.stderr]
    lines, answer = answer_of(config, command)
    unsaid = {line for line in lines if line.startswith((*UNSAID, ASK)) or UNKNOWN in line or line.endswith(SHORT)}
    wrong = [each for each in untrue(answer, whole[1]) if not each.endswith(SHORT)]
    return "less" if unsaid else "same", [*wrong, *(lines - whole[0] - unsaid)]


@pytest.mark.parametrize("rights", MATRIX)
def test_whoever_asks_reads_less_and_nothing_else(
    installed: Installed, research: str, whole: Whole, rights: str, pytestconfig: pytest.Config
) -> None:
    with somebody(installed, research, rights) as config:
        found, wrong = {}, {}
        for name in COMMANDS:
            command, admin = in_namespace(name, research), Path(installed.cluster.kubeconfig)
            now = answer_of(admin, command) if name in OF_THE_CLUSTER else whole[name]
            found[name], wrong[name] = outcome(config, command, now)
            announce(pytestconfig, f"with {rights:<16} {name:<28} {found[name]}")
    assert {name: each for name, each in wrong.items() if each} == {}
    if rights == "none":
        assert set(found.values()) == {"asks for rights"}
    if rights == "edit and reader":
        assert found == ANSWERED


def test_what_nobody_may_see_is_not_guessed(installed: Installed, research: str) -> None:
    """None is free, and what lies there is below nobody: without other people's pods neither can be told."""
    with somebody(installed, research, "edit and reader") as config:
        answer = asked(config, "why-pending", "notebook", f"--namespace={research}")
        mars = gpu_pod("mars", 1, tier="gpu-interactive", nodeSelector={"zone": "mars"})
        installed.create(mars, research)
        never = asked(config, "why-pending", "mars", f"--namespace={research}").stdout
        installed.api.delete("pod/mars", namespace=research)
    assert "without the label zone=mars of its nodeSelector" in never
    assert "the right to list pods" not in never, "no pod has a part in that answer"
    answer_of = answer.stdout.splitlines()
    lines = [each for each in answer_of if each]
    unknown = [nth for nth, each in enumerate(lines) if UNKNOWN in each]
    assert [lines[nth] for nth in unknown] == [
        f"Which GPUs are free, and who holds the others{UNKNOWN}list pods in all namespaces."
    ]
    answer = "".join(line for line in lines[: unknown[0]] if not line.endswith(SHORT))
    assert "The scheduler says: " in answer, "the answer comes first"
    assert " free" not in answer
    of_its_tier = "Its tier gpu-interactive evicts nobody (preemptionPolicy Never): it starts when pods there end; "
    answer = answer.replace(f"{of_its_tier}another tier may evict them.", "")
    assert "evict" not in answer.replace("preemption", "")
