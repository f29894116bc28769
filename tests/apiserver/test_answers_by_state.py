"""The states in which an object can be, and what why-pending and explain say of each: no cell may be false."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from webhook.cli.main import app

from .asking import kubeconfig_of, running
from .conftest import new_namespace
from .dra import Dra
from .installed import Installed, Tree, gpu_deployment, gpu_job, gpu_pod

pytestmark = pytest.mark.apiserver

STATES = yaml.safe_load((Path(__file__).parent / "states.yaml").read_text(encoding="utf-8"))

KUEUE = [{"name": "kueue.x-k8s.io/admission"}]


class States:
    """Two namespaces with an object in each state, and the kubeconfigs of an administrator and a researcher."""

    def __init__(self, installed: Installed, denies: str, queues: str) -> None:
        self.installed, self.denies, self.queues = installed, denies, queues
        admin = Path(installed.cluster.kubeconfig)
        self.people = {"admin": {denies: admin, queues: admin}, "researcher": {}}
        for namespace in (denies, queues):
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "researcher"}}
            installed.api.create(account, namespace)
            installed.bind("researcher-edit", "edit", "researcher", namespace)
            installed.bind(f"reader-{namespace}", "gpu-tiers-reader", "researcher", namespace, everywhere=True)
            self.people["researcher"][namespace] = kubeconfig_of(installed, "researcher", namespace)

    def says(self, person: str, command: str, row: dict[str, Any]) -> str:
        namespace = self.queues if row.get("queue") else self.denies
        config = self.people[person][namespace]
        arguments = [command, row["object"], f"--namespace={namespace}", f"--kubeconfig={config}"]
        return CliRunner().invoke(app, arguments).output

    def create(self, tree: Tree, namespace: str) -> None:
        answer = self.installed.create(tree, namespace)
        assert answer.code == 0, answer.stderr

    def runs(self, name: str, namespace: str) -> Callable[[], bool]:
        return lambda: running(self.installed, namespace, name)

    def make(self, node: str, dra: Dra) -> None:
        """Bring an object into each state; the Job is evicted last, for it backs off for 10 seconds."""
        installed, denies, queues = self.installed, self.denies, self.queues
        # 1. What needs no node of its own.
        self.create(gpu_job("late", 1, activeDeadlineSeconds=1), denies)
        self.create(gpu_job("later", 1, suspend=True), denies)
        for name in ("none", "mistyped"):
            self.create(gpu_deployment(name, 1, node, replicas=0), denies)
        mistyped = ("label", "deployment/mistyped", "gpu-tiers.dev/tier=gold", "--overwrite", f"--namespace={denies}")
        assert "unknown tier" in installed.cluster.kubectl(*mistyped, check=False).stderr
        job = {"spec": gpu_job("x", 1)["spec"]}
        yearly = {"metadata": {"name": "yearly", "labels": {"gpu-tiers.dev/tier": "gpu-training"}}}
        yearly |= {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"schedule": "0 3 1 1 *", "jobTemplate": job}}
        self.create(yearly, denies)
        self.create(gpu_pod("kueued", 1, tier="gpu-batch", schedulingGates=KUEUE), denies)

        # 2. A row that is full, by refusal and by queue.
        self.create(gpu_deployment("first", 1, f"{node}-more"), denies)
        installed.eventually(lambda: "gpu-serving 1/1" in installed.usage(denies), "a full row")
        self.create(gpu_deployment("web", 1, node), denies)
        self.create(gpu_job("train", 1, f"{node}-more"), denies)
        self.create(gpu_pod("there", 2, tier="gpu-training", node=f"{node}-more"), queues)
        installed.eventually(self.runs("there", queues), "the quota is used")
        self.create(gpu_pod("behind", 2, tier="gpu-training", node=f"{node}-more"), queues)

        # 3. Devices of DRA, all of them used by a lower tier.
        dra.apply(*dra.objects())
        for number in range(2):
            dra.start(dra.pod(f"uses-{number}", "gpu-batch"))
        self.create(dra.pod("asks", "gpu-training"), denies)

        # 4. A node on which a higher tier evicts two of a lower one, and then a pod that evicts nobody.
        nightly = gpu_job("nightly", 3, node)
        nightly["metadata"]["labels"] = {"gpu-tiers.dev/tier": "gpu-batch"}
        self.create(nightly, denies)
        self.create(gpu_pod("spot", 1, tier="gpu-batch", node=node), denies)
        nightly_runs = {"object": "job/nightly"}
        installed.eventually(lambda: "1 of 1 run" in self.says("admin", "why-pending", nightly_runs), "a full node")
        installed.eventually(self.runs("spot", denies), "a full node")
        self.create(gpu_pod("urgent", 4, tier="gpu-training", node=node), denies)
        installed.eventually(self.runs("urgent", denies), "what evicts them")
        self.create(gpu_pod("notebook", 1, tier="gpu-interactive", node=node), denies)

    def back_off_again(self) -> None:
        """Delete the pod that the Job controller has made meanwhile, so that it waits once more."""
        pods = self.installed.get("pods", self.denies)["items"]
        for each in pods:
            if each["metadata"]["name"].startswith("nightly-"):
                self.installed.api.delete(f"pod/{each['metadata']['name']}", namespace=self.denies, seconds=0)


@pytest.fixture(scope="module")
def states(installed: Installed) -> Iterator[States]:
    cluster = installed.cluster
    with new_namespace(cluster) as denies, new_namespace(cluster) as queues:
        node = f"node-{denies}"
        cluster.add_node(node, gpus=4)
        cluster.add_node(f"{node}-more", gpus=16)
        with (
            installed.tenant_for(denies, denies, quotas=[{"tier": "gpu-serving", "gpus": 1}, {"gpus": 40}]),
            installed.tenant_for(queues, queues, quotas=[{"gpus": 2}], onExceed="Hold"),
        ):
            found, dra = States(installed, denies, queues), Dra(installed, denies)
            found.make(node, dra)
            yield found
        dra.remove()
        for namespace in (denies, queues):
            installed.api.delete(f"clusterrolebinding/reader-{namespace}")
        installed.api.delete(f"node/{node}", f"node/{node}-more")


@pytest.mark.parametrize(
    "row", sorted(STATES, key=lambda each: each["object"] != "job/nightly"), ids=lambda row: row["state"]
)
@pytest.mark.parametrize("person", ["admin", "researcher"])
def test_each_state_is_reported_as_it_is(states: States, person: str, row: dict[str, Any]) -> None:
    answers: dict[str, str] = {}

    def is_true() -> bool:
        for command in ("why-pending", "explain"):
            answers[command] = states.says(person, command, row)
        if row["object"] == "job/nightly" and "is pending." in answers["why-pending"]:
            states.back_off_again()
        return all(matches(row[name], answers[command]) for name, command in (("why", "why-pending"), ("explain",) * 2))

    try:
        states.installed.eventually(is_true, row["state"])
    except TimeoutError:
        pytest.fail("\n".join(answers.values()))


def matches(pattern: str, answers: str) -> bool:
    """Return whether an answer has such a line; each "…" of the pattern stands for any text."""
    found = ".*".join(map(re.escape, pattern.split("…")))
    return re.search(found, answers) is not None
