"""onExceed: Hold on a real control plane: pods over quota wait behind a gate and go from the head of the queue."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from .installed import Installed, gpu_pod
from .queue import GATE, QueueingTenant

pytestmark = pytest.mark.apiserver


def test_of_64_pods_at_once_8_run_and_none_is_refused(line: QueueingTenant) -> None:
    with ThreadPoolExecutor(16) as crowd:
        answers = list(
            crowd.map(lambda number: line.installed.create(line.pod(f"p{number}"), line.namespace), range(64))
        )
    assert [each.stderr for each in answers if each.code] == []
    line.installed.eventually(lambda: len(line.running()) == 8, "8 pods to run")
    assert len(line.waiting()) == 56
    first = line.running()
    line.delete("pod", *first)
    line.installed.eventually(lambda: len(line.running() - first) == 8, "the next 8")
    assert len(line.waiting()) == 48
    # the rest is let go with the tenant
    line.installed.api.delete(f"tenantquota/hold-{line.namespace}")
    line.installed.eventually(lambda: not line.waiting(), "all gates, opened")


def test_a_gang_goes_whole_and_nobody_passes_it(line: QueueingTenant) -> None:
    line.create(line.pod("there", gpus=4))
    line.eventually_runs("there")
    line.create(line.job("gang", pods=6))
    line.installed.eventually(lambda: len(line.waiting()) == 6, "the gang's pods, gated")
    line.create(line.pod("small"))
    line.installed.eventually(lambda: len(line.waiting()) == 7, "the small one behind it")
    assert line.running() == {"there"}
    line.delete("pod", "there")
    line.installed.eventually(lambda: len(line.running()) == 7, "the gang, and then the small one")
    assert not line.waiting()


def test_a_pod_that_names_its_node_meets_what_the_first_reserves_as_usage(line: QueueingTenant) -> None:
    """The API server takes no gate with it, so it can't be queued."""
    line.create(line.pod("there", gpus=4))
    line.eventually_runs("there")
    line.create(line.pod("head", gpus=6))
    line.installed.eventually(
        lambda: [each.get("reservedForQueue") for each in line.status()["usage"]] == ["4"], "what the first reserves"
    )
    bound = line.pod("bound", tier="gpu-batch")
    bound["spec"]["nodeName"] = line.node
    sentence = "the total is at 4 of 8 GPUs, plus 4 reserved for pods queued earlier; this pod asks for 1."
    assert sentence in line.installed.create(bound, line.namespace).stderr
    line.delete("pod", "there")
    line.eventually_runs("head")
    line.installed.eventually(lambda: not line.installed.create(bound, line.namespace).code, "room beside the first")


def test_a_higher_tier_goes_first_and_the_oldest_within_one(line: QueueingTenant) -> None:
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    for name, tier in (("old", "gpu-batch"), ("new", "gpu-batch"), ("high", "gpu-training")):
        line.create(line.pod(name, gpus=5, tier=tier))
        line.installed.eventually(lambda name=name: name in line.waiting(), f"{name}, gated")  # type: ignore[misc]
    line.delete("pod", "there")
    line.eventually_runs("high")
    assert line.waiting() == {"old", "new"}
    line.delete("pod", "high")
    line.eventually_runs("old")
    assert line.waiting() == {"new"}


def test_the_first_reserves_what_it_needs_of_a_row_that_is_not_short(
    installed: Installed, namespace: str, wide: str
) -> None:
    """A lower tier would fill the total otherwise, and the first would never have room on both rows at once."""
    line, rows = QueueingTenant(installed, namespace, wide), [{"gpus": 8}, {"tier": "gpu-training", "gpus": 3}]
    with installed.tenant_for(f"hold-{namespace}", namespace, quotas=rows, onExceed="Hold"):
        line.create(line.pod("there", gpus=2))
        line.eventually_runs("there")
        line.create(line.pod("head", gpus=3))
        line.create(line.pod("all", gpus=6, tier="gpu-batch"))
        line.installed.eventually(lambda: line.status().get("queue", {}).get("pods") == 2, "two in the queue")
        line.delete("pod", "there")
        line.eventually_runs("head")
        assert line.waiting() == {"all"}


def test_a_pod_in_deletion_reserves_nothing_while_a_finalizer_keeps_it(line: QueueingTenant) -> None:
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    stays = line.pod("stays", 8, "gpu-batch")
    stays["metadata"]["finalizers"] = ["example.com/never"]
    line.create(stays)
    line.installed.eventually(lambda: "stays" in line.waiting(), "it, gated")
    line.delete("pod", "stays")
    line.create(line.pod("next", gpus=8, tier="gpu-batch"))
    line.delete("pod", "there")
    line.eventually_runs("next")
    where = (f"--namespace={line.namespace}", "--type=merge", '--patch={"metadata": {"finalizers": null}}')
    line.installed.cluster.kubectl("patch", "pod", "stays", *where)


def test_a_pod_that_is_made_again_gets_the_position_of_its_predecessor(line: QueueingTenant) -> None:
    template = gpu_pod("", 8, tier="gpu-batch", node=line.node)
    template["metadata"] = {"labels": {"app": "score", "gpu-tiers.dev/tier": "gpu-batch"}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "score"}}}
    spec["template"] = {key: template[key] for key in ("metadata", "spec")}
    line.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "score"}, "spec": spec})
    line.installed.eventually(lambda: len(line.running()) == 1, "its pod")
    line.create(line.pod("waits", tier="gpu-training"))
    line.installed.eventually(lambda: "waits" in line.waiting(), "another that waits")
    (before,) = line.running()
    line.delete("pod", before)
    line.installed.eventually(lambda: len(line.running() - {before}) == 1, "the next pod")
    assert line.waiting() == {"waits"}


def test_a_deployment_that_rolls_without_surge_loses_nothing_to_the_line(line: QueueingTenant) -> None:
    template = gpu_pod("", 8, tier="gpu-batch", node=line.node)
    template["metadata"] = {"labels": {"app": "score", "gpu-tiers.dev/tier": "gpu-batch"}}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "score"}}, "strategy": rolling}
    spec["template"] = {key: template[key] for key in ("metadata", "spec")}
    line.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "score"}, "spec": spec})
    line.installed.eventually(lambda: len(line.running()) == 1, "its pod")
    line.create(line.pod("waits", tier="gpu-training"))
    line.installed.eventually(lambda: "waits" in line.waiting(), "another that waits")
    before = line.running()
    where = (f"--namespace={line.namespace}", "deployment/score")
    line.installed.cluster.kubectl("set", "image", *where, "main=registry.example/work:2")
    line.installed.eventually(lambda: len(line.running() - before) == 1, "the pod of the next revision")
    assert line.waiting() == {"waits"}


def test_what_can_never_fit_is_refused(line: QueueingTenant) -> None:
    answer = line.installed.create(line.pod("huge", gpus=9), line.namespace)
    assert "GPUs" in answer.stderr, answer.stderr
    assert answer.code
    answer = line.installed.create(line.job("wide", pods=9), line.namespace)
    assert answer.code, answer.stdout


def test_nobody_would_open_our_gate_on_a_pod_without_gpus(line: QueueingTenant) -> None:
    web = line.pod("web")
    web["metadata"]["labels"], web["spec"]["schedulingGates"] = {}, [GATE]
    del web["spec"]["containers"][0]["resources"]
    answer = line.installed.create(web, line.namespace)
    assert "spec.schedulingGates: gpu-tiers.dev/quota is the gate of pods that wait" in answer.stderr


def test_best_effort_lets_those_pass_that_fit(installed: Installed, namespace: str, wide: str) -> None:
    line = QueueingTenant(installed, namespace, wide)
    spec = {"quotas": [{"gpus": 8}], "onExceed": "Hold", "holdOrder": "BestEffort"}
    with installed.tenant_for(f"hold-{namespace}", namespace, **spec):
        line.create(line.pod("there", gpus=4))
        line.eventually_runs("there")
        line.create(line.pod("large", gpus=6))
        installed.eventually(lambda: "large" in line.waiting(), "the large one, gated")
        line.create(line.pod("small", gpus=2))
        line.eventually_runs("small")
        assert line.waiting() == {"large"}


def test_one_row_may_hold_while_the_others_refuse(installed: Installed, namespace: str, wide: str) -> None:
    line = QueueingTenant(installed, namespace, wide)
    rows = [{"tier": "gpu-batch", "gpus": 2, "onExceed": "Hold"}, {"tier": "gpu-training", "gpus": 2}]
    with installed.tenant_for(f"hold-{namespace}", namespace, quotas=rows):
        line.create(line.pod("first", gpus=2, tier="gpu-batch"))
        line.eventually_runs("first")
        line.create(line.pod("waits", tier="gpu-batch"))
        line.create(line.pod("trains", gpus=2))
        line.eventually_runs("trains")
        answer = installed.create(line.pod("refused"), namespace)
        assert "gpu-training is at 2 of 2 GPUs" in answer.stderr
        assert line.waiting() == {"waits"}
        line.delete("pod", "first")
        line.eventually_runs("waits")


def test_a_tenant_that_refuses_again_drains_its_line(line: QueueingTenant) -> None:
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    line.create(line.pod("waits", gpus=4))
    line.installed.eventually(lambda: "waits" in line.waiting(), "one that waits")
    line.installed.tenant(f"hold-{line.namespace}", line.namespace, quotas=[{"gpus": 8}], onExceed="Deny")
    answer = line.installed.create(line.pod("refused"), line.namespace)
    assert "is at 8 of 8 GPUs" in answer.stderr, answer.stderr
    line.delete("pod", "there")
    line.eventually_runs("waits")


def test_the_next_leader_goes_on_where_one_has_died(line: QueueingTenant) -> None:
    line.create(line.pod("there", gpus=8))
    line.eventually_runs("there")
    line.create(line.job("gang", pods=8))
    line.installed.eventually(lambda: len(line.waiting()) == 8, "the gang's pods, gated")
    line.installed.kill()
    line.delete("pod", "there")
    line.installed.restart()
    line.installed.eventually(lambda: len(line.running()) == 8, "the gang to run")
