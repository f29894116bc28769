"""A training Job of a tenant that holds is evicted at full quota: it goes before the line, and on where it stopped."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demonstration.cases import ENDS
from demonstration.preemption import GPUS, Preemption
from demonstration.workloads import create, gpu_pod
from localcluster.for_tests import announce
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until
from tests.builders import tenant_quota

from .together import SECONDS

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("release")]

QUOTA = {"quotas": [{"tier": "gpu-batch", "gpus": GPUS}], "onExceed": "Hold"}


@pytest.fixture
def tenant(node: NodeCluster, namespace: str) -> Iterator[str]:
    """A tenant of this namespace, whose batch pods are queued."""
    node.api.apply(tenant_quota(namespace, namespace, **QUOTA))
    node.api.wait_for("Ready", f"tenantquota/{namespace}")
    yield namespace
    node.api.delete(f"tenantquota/{namespace}")


class WithALine(Preemption):
    """Beside the Job another pod of the tenant waits from the first step on, and a third when the Job is evicted."""

    def _steps(self) -> str:
        of_job = {"labelSelector": "job-name=training"}
        wait_until(lambda: bool(self.node.api.get("pods", self.namespace, **of_job)["items"]), SECONDS, "the Job's pod")
        self._wait_in_line("second")
        return super()._steps()

    def _give_them_back(self) -> float | None:
        self._wait_in_line("third")
        return super()._give_them_back()

    def _wait_in_line(self, name: str) -> None:
        create(self.node, self.namespace, gpu_pod(name, "sleep", "600", gpus=GPUS, tier="gpu-batch"))
        wait_until(lambda: self.gated(name), SECONDS, f"{name}, gated")

    def gated(self, name: str) -> bool:
        pod = self.node.api.get(f"pod/{name}", self.namespace)
        return "schedulingGates" in pod["spec"]


def test_an_evicted_training_goes_before_the_line_and_on_where_it_stopped(
    node: NodeCluster, tenant: str, data: Path, pytestconfig: pytest.Config
) -> None:
    run = WithALine(node, tenant, data, ENDS, lambda line: announce(pytestconfig, line))
    outcome = run.run()
    assert outcome.figures.steps_lost == 0
    assert outcome.figures.resumed_at
    assert run.gated("second")
    assert run.gated("third")
    node.kubectl("delete", "job", "training", f"--namespace={tenant}", "--cascade=foreground")
    wait_until(lambda: not run.gated("second"), SECONDS, "the next of the line, let go")
    assert run.gated("third")
