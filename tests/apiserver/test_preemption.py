"""Who evicts whom on a real scheduler, with the tiers that the webhook gave: read from the scheduler's own events."""

import pytest

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver


def events(installed: Installed, namespace: str, reason: str) -> dict[str, str]:
    """The messages of a reason's events, by the name of the pod they are about."""
    command = ("get", "events", f"--namespace={namespace}", f"--field-selector=reason={reason}", "--output=json")
    found = installed.cluster.kubectl(*command).json()["items"]
    return {event["involvedObject"]["name"]: event["message"] for event in found}


def running(installed: Installed, namespace: str, name: str) -> bool:
    return str(installed.get(f"pod/{name}", namespace)["status"]["phase"]) == "Running"


def test_training_evicts_batch_and_a_notebook_evicts_nobody(installed: Installed, namespace: str, node: str) -> None:
    for number in (1, 2):
        installed.create(gpu_pod(f"batch-{number}", 2, tier="gpu-batch", node=node), namespace)
    installed.eventually(lambda: all(running(installed, namespace, f"batch-{n}") for n in (1, 2)), "a full node")

    installed.create(gpu_pod("notebook", 1, tier="gpu-interactive", node=node), namespace)
    installed.eventually(lambda: "notebook" in events(installed, namespace, "FailedScheduling"), "the notebook's wait")
    waits = events(installed, namespace, "FailedScheduling")["notebook"]
    assert "preemption: not eligible due to preemptionPolicy=Never" in waits
    assert not events(installed, namespace, "Preempted")

    installed.create(gpu_pod("training", 4, tier="gpu-training", node=node), namespace)
    installed.eventually(lambda: running(installed, namespace, "training"), "training on the node")
    evicted = events(installed, namespace, "Preempted")
    assert set(evicted) == {"batch-1", "batch-2"}
    uid = installed.get("pod/training", namespace)["metadata"]["uid"]
    assert all(message == f"Preempted by pod {uid} on node {node}" for message in evicted.values())

    installed.eventually(lambda: len(events(installed, namespace, "PreemptionOutcome")) == 2, "who took its place")
    told = events(installed, namespace, "PreemptionOutcome")["batch-1"]
    place = f"{namespace}/batch-1 (gpu-batch) was evicted from {node} for {namespace}/training (gpu-training); "
    # a fake node ends a pod at once, maybe before anybody has read it
    assert told.startswith((f"{place}it had no preStop hook", f"{place}whether it saved is not known")), told
    tiers = {"victim_tier": "gpu-batch", "preemptor_tier": "gpu-training"}
    assert installed.metric("gpu_tiers_preemptions_total", **tiers) >= 2


def test_pods_from_before_the_installation_live_through_adoption(
    installed: Installed, namespace: str, node: str
) -> None:
    # kube-public is exempt from the webhook: a pod there is as one from before the installation
    assert installed.create(gpu_pod("before", 4, node=node), "kube-public").code == 0
    try:
        installed.eventually(lambda: running(installed, "kube-public", "before"), "the old pod")
        installed.upgrade(adoption=True)
        installed.create(gpu_pod("newcomer", 4, tier="gpu-training", node=node), namespace)
        pod = installed.get("pod/newcomer", namespace)
        assert pod["spec"]["priorityClassName"] == "gpu-training-nonpreempting"
        assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (1000, "Never")
        installed.eventually(lambda: "newcomer" in events(installed, namespace, "FailedScheduling"), "its wait")
        assert running(installed, "kube-public", "before")
        assert not events(installed, "kube-public", "Preempted")
    finally:
        installed.upgrade()
        installed.cluster.kubectl("delete", "pod", "before", "-n=kube-public", "--grace-period=0", "--force")
