"""Gangs of Kubernetes' own kinds on the real scheduler: who trains goes as a whole (KEP-4671, KEP-5710)."""

import pytest

from .asking import events, running
from .groups import a_gang, apply_gang, pods_of, runs_whole
from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver


def test_of_two_jobsets_of_which_one_fits_the_lower_goes_whole_and_saves(
    installed: Installed, namespace: str, node: str, version: str
) -> None:
    apply_gang(installed, namespace, a_gang(version, "sweep", "gpu-batch", node))
    installed.eventually(lambda: runs_whole(installed, namespace, "sweep"), "the first gang")
    lower = pods_of(installed, namespace, "sweep")
    assert {each["spec"]["priorityClassName"] for each in lower} == {"gpu-batch"}
    assert all("preStop" in each["spec"]["containers"][0]["lifecycle"] for each in lower), "each of them saves"

    apply_gang(installed, namespace, a_gang(version, "pretrain", "gpu-training", node))
    installed.eventually(lambda: runs_whole(installed, namespace, "pretrain"), "the second gang")
    names = {each["metadata"]["name"] for each in lower}
    installed.eventually(lambda: names <= {*events(installed, namespace, "Preempted")}, "an event on all four of them")
    waiting = [each["status"]["phase"] for each in pods_of(installed, namespace, "sweep")]
    assert "Running" not in waiting, "no pod of it holds a GPU that the others wait for"


def test_a_pod_outside_any_group_evicts_a_gang_whole_on_1_37_and_breaks_it_on_1_36(
    installed: Installed, namespace: str, node: str, version: str
) -> None:
    older = version.endswith("v1alpha2")
    said = apply_gang(installed, namespace, a_gang(version, "sweep", "gpu-batch", node))
    assert any("[gang-broken-by-pods]" in each for each in said) is older
    installed.eventually(lambda: runs_whole(installed, namespace, "sweep"), "the gang")
    gang = {each["metadata"]["name"] for each in pods_of(installed, namespace, "sweep")}

    installed.create(gpu_pod("urgent", 1, tier="gpu-training", node=node), namespace)
    installed.eventually(lambda: running(installed, namespace, "urgent"), "the urgent pod")
    most = 1 if older else 4

    def evicted() -> set[str]:
        return gang & {*events(installed, namespace, "Preempted")}

    installed.eventually(lambda: len(evicted()) >= most, "the events, which the scheduler writes beside")
    assert len(evicted()) == most
