"""Evictions of a real scheduler between the tiers that the webhook gave, read from the scheduler's own events."""

import re
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from webhook.cli.main import app

from .asking import events, running
from .conftest import new_namespace
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


def test_training_evicts_batch_and_a_notebook_evicts_nobody(installed: Installed, namespace: str, node: str) -> None:
    for number in (1, 2):
        installed.create(gpu_pod(f"batch-{number}", 2, tier="gpu-batch", node=node), namespace)
    installed.eventually(lambda: all(running(installed, namespace, f"batch-{n}") for n in (1, 2)), "a full node")

    installed.create(gpu_pod("notebook", 1, tier="gpu-interactive", node=node), namespace)
    installed.eventually(lambda: "notebook" in events(installed, namespace, "FailedScheduling"), "the notebook's wait")
    waits = events(installed, namespace, "FailedScheduling")["notebook"]
    assert "preemption: not eligible due to preemptionPolicy=Never" in waits
    assert not events(installed, namespace, "Preempted")

    before = installed.metric("gpu_tiers_eviction_seconds_count", preemptor_tier="gpu-training")
    installed.create(gpu_pod("training", 4, tier="gpu-training", node=node), namespace)
    installed.eventually(lambda: running(installed, namespace, "training"), "training on the node")
    uid = installed.get("pod/training", namespace)["metadata"]["uid"]
    evicted = dict.fromkeys(("batch-1", "batch-2"), f"Preempted by pod {uid} on node {node}")
    installed.eventually(lambda: events(installed, namespace, "Preempted") == evicted, "the scheduler's events")

    installed.eventually(lambda: len(events(installed, namespace, "PreemptionOutcome")) == 2, "who took its place")
    outcomes = events(installed, namespace, "PreemptionOutcome")["batch-1"]
    place = f"{namespace}/batch-1 (gpu-batch) was evicted from {node} for {namespace}/training (gpu-training); "
    # a fake node ends a pod at once, maybe before anybody has read it
    assert outcomes.startswith((f"{place}it had no preStop hook", f"{place}whether it saved is unknown")), outcomes
    tiers = {"victim_tier": "gpu-batch", "preemptor_tier": "gpu-training"}
    assert installed.metric("gpu_tiers_preemptions_total", **tiers) >= 2
    ends_seen = sum("it ended after" in each for each in events(installed, namespace, "PreemptionOutcome").values())
    counted = installed.metric("gpu_tiers_eviction_seconds_count", preemptor_tier="gpu-training")
    assert before + ends_seen <= counted <= before + 2, "one that had gone may be known by its booking"


def leads(installed: Installed) -> bool:
    return installed.metric("gpu_tiers_leading") == 1


def nobody_leads(installed: Installed) -> bool:
    """Hold the Lease for 3 s from each call, as if another replica had just died."""
    lease = {"holderIdentity": "another", "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    installed.api.patch("lease/gpu-tiers", {"spec": lease}, namespace="gpu-tiers")
    return not leads(installed)


def test_a_preemption_while_nobody_leads_is_reported_once_by_who_leads_next(
    installed: Installed, namespace: str, node: str
) -> None:
    def outcomes() -> dict[str, str]:
        return events(installed, namespace, "PreemptionOutcome")

    installed.create(gpu_pod("batch-1", 4, tier="gpu-batch", node=node), namespace)
    installed.eventually(lambda: running(installed, namespace, "batch-1"), "a full node")
    installed.eventually(lambda: nobody_leads(installed), "the leader's end")
    assert installed.create(gpu_pod("training", 4, tier="gpu-training", node=node), namespace).code == 0
    evicted = "batch-1 to be evicted while nobody leads"
    installed.eventually(
        lambda: nobody_leads(installed) and "batch-1" in events(installed, namespace, "Preempted"), evicted
    )
    installed.eventually(lambda: "batch-1" in outcomes(), "the next leader's word")
    evicted_for = f"was evicted from {node} for {namespace}/training (gpu-training)"
    # a fake node ends a pod at once, maybe before anybody has read it
    batch = (f"{namespace}/batch-1 ({tier}) {evicted_for}" for tier in ("gpu-batch", "tier not known"))
    assert outcomes()["batch-1"].startswith(tuple(batch)), outcomes()

    installed.change_leader()
    installed.eventually(lambda: leads(installed), "the next leader")
    installed.api.delete("pod/training", namespace=namespace)
    installed.create(gpu_pod("batch-2", 4, tier="gpu-batch", node=node), namespace)
    installed.eventually(lambda: running(installed, namespace, "batch-2"), "a full node")
    installed.create(gpu_pod("more", 4, tier="gpu-training", node=node), namespace)
    installed.eventually(lambda: "batch-2" in outcomes(), "what the next leader says of its own")
    found = installed.get("events", namespace)["items"]
    counts = {each["involvedObject"]["name"]: each["count"] for each in found if each["reason"] == "PreemptionOutcome"}
    assert counts == {"batch-1": 1, "batch-2": 1}


def test_what_a_leader_had_begun_to_tell_when_it_died_is_reported_by_the_next(
    installed: Installed, namespace: str, node: str
) -> None:
    template = gpu_pod("", 2, tier="gpu-batch", node=node, restartPolicy="Never")
    spec = {"parallelism": 2, "completions": 2, "template": {key: template[key] for key in ("metadata", "spec")}}
    del template["metadata"]["name"]
    installed.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sweep"}, "spec": spec}, namespace)
    installed.eventually(lambda: len(on_node(installed, namespace, node)) == 2, "a full node")

    def outcomes() -> int:
        found = installed.api.get("events", namespace, fieldSelector="reason=PreemptionOutcome")
        return sum(each["count"] for each in found["items"])

    def marks() -> list[str]:
        found = installed.api.get("events", namespace, fieldSelector="reason=Preempted")["items"]
        return sorted(each["metadata"].get("annotations", {}).get("gpu-tiers.dev/settled", "") for each in found)

    # One after the other, because the scheduler may write two events on one victim otherwise.
    installed.create(gpu_pod("first", 2, tier="gpu-training", node=node), namespace)
    installed.eventually(lambda: marks() == ["true"], "the first victim, told of")
    installed.create(gpu_pod("second", 2, tier="gpu-training", node=node), namespace)
    installed.eventually(lambda: marks() == ["true", "true"], "the second one")
    assert outcomes() == 2, "an event of each victim"

    # As if it had died between its mark and its word on the second victim.
    installed.kill()
    (word, *_) = installed.api.get("events", namespace, fieldSelector="reason=PreemptionOutcome")["items"]
    installed.api.delete(f"event/{word['metadata']['name']}", namespace=namespace)
    (mark,) = (
        each["metadata"]["name"]
        for each in installed.api.get("events", namespace, fieldSelector="reason=Preempted")["items"]
        if each["involvedObject"]["name"] == word["related"]["name"]
    )
    telling = "gpu-tiers.dev/settled=telling"
    installed.cluster.kubectl("annotate", f"event/{mark}", telling, "--overwrite", f"--namespace={namespace}")
    assert marks() == ["telling", "true"]
    installed.restart()
    installed.eventually(lambda: marks() == ["true", "true"], "the next leader's word")
    found = installed.api.get("events", namespace, fieldSelector="reason=PreemptionOutcome")["items"]
    assert outcomes() == 2, found


def asked(installed: Installed, *arguments: str) -> str:
    answer = CliRunner().invoke(app, [*arguments, f"--kubeconfig={installed.cluster.kubeconfig}"])
    assert answer.exit_code == 0, answer.stderr
    return answer.stdout


def on_node(installed: Installed, namespace: str, node: str) -> list[Tree]:
    found = installed.api.get("pods", namespace, fieldSelector=f"spec.nodeName={node}")["items"]
    return [each for each in found if each["status"]["phase"] == "Running"]


def test_the_work_of_training_pods_is_at_risk_from_their_start(installed: Installed, namespace: str, node: str) -> None:
    with installed.tenant_for(f"risk-{namespace}", namespace, quotas=[{"gpus": 8}]) as tenant:
        training = gpu_pod("training", 2, node=node)
        training["spec"]["containers"][0]["command"] = ["torchrun", "train.py"]
        serving = gpu_pod("serving", 1, node=node)
        serving["spec"]["containers"][0]["command"] = ["vllm", "serve", "llama"]
        for each in (training, serving):
            installed.create(each, namespace)
        installed.eventually(lambda: len(on_node(installed, namespace, node)) == 2, "both pods")

        def at_risk(**labels: str) -> float:
            return installed.metric("gpu_tiers_at_risk_gpu_seconds", tenant=tenant, **labels)

        installed.eventually(lambda: at_risk(tier="gpu-training", exact="false") >= 2, "two GPUs for a second")
        assert at_risk() == at_risk(tier="gpu-training", exact="false"), "requests that are served are no work to lose"
        usage = asked(installed, "usage", tenant, "--at-risk")
        assert re.search(rf"{tenant} +gpu-training +at most \d+ GPU-", usage), usage
        assert re.search(r"Evicting all of these training pods now loses at most \d+ GPU-\w+\.", usage), usage
        outcomes = r"Tier gpu-training: evicting all of its training pods now loses at most \d+ GPU-"
        assert re.search(outcomes, posture := asked(installed, "posture", tenant, "--at-risk")), posture
        assert "now loses" not in asked(installed, "posture", tenant)

        installed.api.delete("pod/training", namespace=namespace)
        installed.eventually(lambda: not at_risk(), "nothing at risk")


def test_events_that_a_person_writes_stop_nobody_and_tell_nothing_of_others(
    installed: Installed, namespace: str, node: str
) -> None:
    with new_namespace(installed.cluster) as others:
        installed.cluster.kubectl(
            "create", "rolebinding", "mallory", "--clusterrole=edit", "--user=mallory", f"--namespace={namespace}"
        )
        installed.create(gpu_pod("own", 1, tier="gpu-batch", node=node), namespace)
        installed.create(gpu_pod("theirs", 3, tier="gpu-batch", node=node), others)
        installed.eventually(
            lambda: running(installed, namespace, "own") and running(installed, others, "theirs"), "a full node"
        )
        own, theirs = (
            installed.get(f"pod/{name}", where)["metadata"]["uid"]
            for name, where in (("own", namespace), ("theirs", others))
        )
        forged = [written_event(namespace, "own", own, f"Preempted by pod {theirs} on node {node}") for _ in range(120)]
        forged += [written_event(namespace, name, theirs, said(own, node)) for name in ("theirs", "x") for said in LIES]
        answer = installed.create({"apiVersion": "v1", "kind": "List", "items": forged}, namespace, user="mallory")
        assert answer.code == 0, answer.stderr

        # one watch for each of them would have left the webhook no connection to ask the API server anything
        assert installed.create(gpu_pod("urgent", 3, tier="gpu-training", node=node), others).code == 0
        installed.eventually(lambda: "theirs" in events(installed, others, "PreemptionOutcome"), "what is true")
        outcomes = events(installed, others, "PreemptionOutcome")
        assert [*outcomes] == ["theirs"]
        true = f"{others}/theirs (gpu-batch) was evicted from {node} for {others}/urgent (gpu-training); "
        assert outcomes["theirs"].startswith(true), outcomes
        assert not events(installed, namespace, "PreemptionOutcome")


LIES = (
    lambda uid, node: f"Preempted by pod {uid} on node {node}",
    lambda uid, node: f"Preempted by pod {uid} on node {node}: pay, or more will follow",
)


def written_event(namespace: str, name: str, uid: str, message: str) -> Tree:
    """An event as the scheduler writes one."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "written-", "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid},
        "reason": "Preempted",
        "message": message,
        "type": "Normal",
        "source": {"component": "default-scheduler"},
        "firstTimestamp": now,
        "lastTimestamp": now,
    }


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
        installed.api.delete("pod/before", namespace="kube-public", seconds=0)
