"""One control plane with the webhook for all operators; an operator starts with the first test that wants it."""

import json
import os
import uuid
from collections.abc import Callable, Iterator

import pytest

from localcluster import ControlPlane
from localcluster.binaries import BinaryError
from localcluster.for_tests import missing, started
from localcluster.operators import Operator, RunningOperator, rows
from localcluster.operators.manifests import module_folder
from localcluster.versions import DEFAULT_KUBERNETES
from tests.apiserver.installed import Installed

from .samples import a_container, a_workload
from .team import Team

NODES, GPUS = 4, 16

Start = Callable[[Operator], RunningOperator]


@pytest.fixture(scope="package")
def installed(pytestconfig: pytest.Config) -> Iterator[Installed]:
    """gpu-tiers in Enforce on a control plane of the tests' own: the operators' webhooks are the whole cluster's."""
    with started(ControlPlane(os.environ.get("K8S") or DEFAULT_KUBERNETES), pytestconfig) as cluster:
        for number in range(NODES):
            cluster.add_node(f"gpu-{number}", gpus=GPUS)
        yield Installed(cluster)


@pytest.fixture(scope="package")
def start(installed: Installed) -> Start:
    """Return how to start an operator. Without its program the tests are skipped; under CI=true they fail."""

    def started_one(row: Operator) -> RunningOperator:
        try:
            return RunningOperator(installed.cluster, row)
        except BinaryError as error:
            missing(f"no {row.name}: {error}")

    return started_one


@pytest.fixture(scope="package")
def jobset(start: Start) -> RunningOperator:
    """JobSet's controller and webhooks."""
    return start(rows.JOBSET)


@pytest.fixture(scope="package")
def lws(start: Start) -> RunningOperator:
    """LeaderWorkerSet's controller and webhooks."""
    return start(rows.LWS)


@pytest.fixture(scope="package")
def kuberay(start: Start) -> RunningOperator:
    """KubeRay's operator; its webhooks are off, as they are by default."""
    return start(rows.KUBERAY)


@pytest.fixture(scope="package")
def training_operator(start: Start) -> RunningOperator:
    """Kubeflow's training operator, of PyTorchJobs and the like."""
    return start(rows.TRAINING_OPERATOR)


@pytest.fixture(scope="package")
def trainer(start: Start, jobset: RunningOperator) -> RunningOperator:  # noqa: ARG001 - makes the pods of a TrainJob
    """Kubeflow's Trainer, with the runtime for PyTorch that it ships."""
    running = start(rows.TRAINER)
    runtime = module_folder(rows.TRAINER) / "manifests" / "base" / "runtimes" / "torch_distributed.yaml"
    running.cluster.apply(runtime.read_text())
    return running


@pytest.fixture(scope="package")
def volcano(start: Start) -> RunningOperator:
    """Volcano's controllers and webhooks without its scheduler, and the queues that this would make."""
    start(rows.VOLCANO_WEBHOOKS)
    running = start(rows.VOLCANO_CONTROLLERS)
    for name in ("root", "default"):
        queue = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1},
        }
        running.cluster.apply(json.dumps(queue))
    return running


@pytest.fixture(scope="module")
def kueue(start: Start) -> Iterator[RunningOperator]:
    """Kueue for one file's tests: its webhooks are asked about every pod and every Job."""
    running = start(rows.KUEUE)
    yield running
    running.end()


@pytest.fixture
def team(installed: Installed) -> Iterator[Team]:
    """A tenant with 8 GPUs of training and 16 in all, in a namespace of its own."""
    name = f"team-{uuid.uuid4().hex[:8]}"
    installed.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    found = Team(installed, name)
    found.may_use({"tier": "gpu-training", "gpus": "8"}, {"gpus": "16"})
    found.wait_for_service_account()
    yield found
    found.leave()


@pytest.fixture
def full(team: Team) -> Team:
    """The team with 8 GPUs in all, which another pod has: what is more waits."""
    team.may_use({"gpus": "8"}, onExceed="Hold")
    team.apply(a_workload("v1", "Pod", "there", {"containers": [a_container("train", 8, "python", "train.py")]}))
    team.runs(1)
    return team
