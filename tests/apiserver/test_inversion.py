"""Pods that can never start: nobody frees GPUs of lower tiers, or free GPUs are split over nodes."""

import pytest

from .installed import Installed, gpu_pod

pytestmark = [pytest.mark.apiserver, pytest.mark.release]  # minutes, for it looks once a minute


def inverted(installed: Installed, **labels: str) -> float:
    return installed.metric("gpu_tiers_inverted_seconds", **labels)


def test_a_scheduler_that_does_not_run_lets_training_wait_while_batch_runs(
    installed: Installed, namespace: str, node: str
) -> None:
    def phase(name: str) -> str:
        return str(installed.get(f"pod/{name}", namespace)["status"]["phase"])

    installed.create(gpu_pod("batch", 4, tier="gpu-batch", node=node), namespace)
    installed.eventually(lambda: phase("batch") == "Running", "a full node")
    waiting = gpu_pod("training", 4, tier="gpu-training", node=node, schedulerName="down")
    assert installed.create(waiting, namespace).code == 0
    for tier, where in (("gpu-serving", None), ("gpu-interactive", node)):
        silent = gpu_pod(f"of-{tier}", 4, tier=tier, node=where, schedulerName="down")
        assert installed.create(silent, namespace).code == 0

    labels = {"tier": "gpu-training", "lower_tier": "gpu-batch"}
    installed.eventually(lambda: inverted(installed, **labels) > 30, "the inversion, at a look")
    assert inverted(installed) == inverted(installed, **labels), (
        "no node takes the one of serving, and one of interactive evicts nobody"
    )

    installed.api.delete("pod/training", namespace=namespace)
    assert installed.create(gpu_pod("again", 4, tier="gpu-training", node=node), namespace).code == 0
    installed.eventually(lambda: phase("again") == "Running", "the real scheduler, which evicts")
    installed.eventually(lambda: inverted(installed) == 0, "the next look")


def test_gpus_that_are_free_on_two_nodes_are_too_few_on_each(installed: Installed, namespace: str, node: str) -> None:
    other = f"{node}-b"
    installed.cluster.add_node(other, gpus=4)
    for number, where in enumerate((node, other)):
        assert installed.create(gpu_pod(f"sweep-{number}", 3, tier="gpu-batch", node=where), namespace).code == 0
    assert installed.create(gpu_pod("notebook", 2, tier="gpu-interactive", node=node), namespace).code == 0
    installed.eventually(lambda: installed.metric("gpu_tiers_stranded_gpus") == 2, "one GPU on each of two nodes")
    installed.api.delete("pod/sweep-0", namespace=namespace)
    installed.eventually(lambda: installed.metric("gpu_tiers_stranded_gpus") == 0, "the next look: the notebook runs")
    installed.api.delete(f"node/{other}")
