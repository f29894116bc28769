"""A person asks why-pending, explain and posture: the conclusion comes first, and then what it rests on."""

import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.builders import a_device_class, a_namespace, a_policy, a_tenant, policy_file
from tests.builders.api import ApiOfObjects, classes_of
from tests.builders.built import Tree
from tests.builders.claims import DEVICE_CLASS
from tests.builders.dra_cluster import NOW, DraCluster
from tests.builders.pods import GPU, IMAGE
from tests.unit.cli.conftest import Answering
from tests.unit.cli.person import asked
from webhook.ledger.account import Account, Entry, written_account
from webhook.policy.checkpoint.listen import REPORT_VOLUME
from webhook.policy.preemption.node_state import RESERVATION, RESERVED
from webhook.policy.preemption.reservation import Reservation
from webhook.policy.quota.charges import Charge

QUOTAS, PODS, NODES = "/apis/gpu-tiers.dev/v1alpha1/tenantquotas", "/api/v1/pods", "/api/v1/nodes"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SINCE_A_MINUTE = time.time() - NOW - 60


def says(answering: Answering, folder: Path, api: ApiOfObjects, *command: str, **spec: object) -> list[str]:
    """The lines of an answer, by a policy that evicts for devices of DRA."""
    policy = folder / "policy.yaml"
    policy.write_text(policy_file(preset="four-tier", preemption={"dra": "On"}, **spec))
    named = (f"--policy={policy}", "--namespace=team-alpha") if command[0] != "posture" else ()
    code, text = asked(folder, answering(api), {"token": "hers"}, *command, *named)
    assert code == 0, text
    return [line for line in text.splitlines() if line]


def a_stored_pod(name: str, *, node: str = "", gate: str = "", phase: str = "Pending") -> Tree:
    containers = [{"name": "main", "image": IMAGE, "resources": {"limits": {GPU: "2"}, "requests": {GPU: "2"}}}]
    spec: Tree = {"priorityClassName": "gpu-batch", "priority": 400, "containers": containers}
    spec |= {"nodeName": node} if node else {}
    spec |= {"schedulingGates": [{"name": gate}]} if gate else {}
    metadata: Tree = {"name": name, "namespace": "team-alpha", "uid": f"uid-{name}"}
    metadata |= {"labels": {"gpu-tiers.dev/tier": "gpu-batch"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def lists(*pods: Tree, quotas: tuple[Tree, ...] = (), **more: list[Tree]) -> dict[str, Any]:
    home = a_namespace().having("metadata.labels", {"kubernetes.io/metadata.name": "team-alpha"}).json()
    classes = {"/apis/scheduling.k8s.io/v1/priorityclasses": classes_of(a_policy())}
    return {"/api/v1/namespaces": [home], PODS: [*pods], QUOTAS: [*quotas], "/api/v1/events": [], **classes, **more}


def test_a_training_that_reports_reads_its_bound(answering: Answering, tmp_path: Path) -> None:
    """The tier's, where it has none of its own."""
    policy = tmp_path / "bounded.yaml"
    policy.write_text(policy_file(preset="four-tier", saves={"maxAtRiskSeconds": {"gpu-batch": 900}}))
    said = []
    for notes in ({}, {"gpu-tiers.dev/checkpoint-max-at-risk": "120"}):
        pod = a_stored_pod("trains", node="node-a", phase="Running")
        pod["metadata"]["annotations"] = {"gpu-tiers.dev/checkpoint": "listen"} | notes
        pod["spec"]["volumes"] = [{"name": REPORT_VOLUME, "projected": {}}]
        server = answering(ApiOfObjects(lists(pod)))
        options = (f"--policy={policy}", "--namespace=team-alpha", "-o", "json")
        code, text = asked(tmp_path, server, {"token": "hers"}, "explain", "trains", *options)
        assert code == 0, text
        said.append(msgspec.json.decode(text)["templates"][0]["maxAtRisk"])
    assert said == [900, 120]


# --- what a person may not read


def test_a_right_that_would_not_change_the_answer_is_not_named(answering: Answering, tmp_path: Path) -> None:
    runs = a_stored_pod("trains", node="node-a", phase="Running")
    lines = says(answering, tmp_path, ApiOfObjects(lists(runs), [QUOTAS]), "why-pending", "trains")
    assert lines == ["Pod/trains in namespace team-alpha, gpu-batch", "WHY", "It runs on node-a."]


def test_a_right_that_would_change_it_is_named_after_the_answer(answering: Answering, tmp_path: Path) -> None:
    queued = a_stored_pod("queued", gate="gpu-tiers.dev/quota")
    lines = says(answering, tmp_path, ApiOfObjects(lists(queued), [QUOTAS]), "why-pending", "queued")
    assert lines[2].endswith("gpu-tiers.dev/quota: it is queued by the quota of its tenant.")
    assert lines[3] == (
        "Its position in the queue of its tenant is unknown: you lack the right to list tenantquotas.gpu-tiers.dev."
    )
    assert lines[4].startswith(
        "ClusterRole gpu-tiers-reader has what you lack; a cluster admin binds it, or adds the right to a"
    )


# --- the order of a queue


def a_queue(**spec: object) -> Tree:
    """A tenant with one row of 4 GPUs, all of them used, and two workloads in its queue."""
    since = {"since": "2026-11-26T17:00:00Z"}
    entries = [
        {"namespace": "team-alpha", "workload": f"Pod/{name}", "uid": f"uid-{name}", "tier": "gpu-batch", "pods": 1}
        | {"gpus": gpus, **since, **why}
        for name, gpus, why in (("large", "4", {"short": "gpu-batch"}), ("small", "2", {"behind": 1}))
    ]
    queue = {"pods": 2, "workloads": 2, "tiers": [{"tier": "gpu-batch", "pods": 2, "gpus": "6"}], "entries": entries}
    usage = [{"tier": "gpu-batch", "hard": "4", "used": "2"}]
    conditions = [{"type": each, "status": "True"} for each in ("Ready", "Exact", "GangsWhole")]
    tenant = a_tenant(onExceed="Hold", **spec).allowing("4", tier="gpu-batch").json()
    used, reserves = Entry(wants=(Charge(Decimal(2), "gpu-batch"),)), {"gpu-batch": Decimal(4)}
    head = Entry(uid="uid-large", namespace="team-alpha", state="ForQueue", reserves=reserves, rank=400)
    account = Account(namespaces={"team-alpha": "open"}, entries=(used, head)).sealed("")
    status = {"usage": usage, "queue": queue, "conditions": conditions, "ledger": written_account(account)}
    return tenant | {"status": status}


ORDERS = {
    "Strict": ({}, "The order is Strict (holdOrder of TenantQuota/alpha): a workload waits behind an earlier one"),
    "Strict for a while": (
        {"reserveSeconds": 1800},
        "until the earlier one has been first for 1800 s (reserveSeconds)",
    ),
    "BestEffort": ({"holdOrder": "BestEffort"}, "The order is BestEffort (holdOrder of TenantQuota/alpha): a workload"),
}


@pytest.mark.parametrize(("spec", "said"), ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("command", ["why-pending", "explain"])
def test_who_waits_behind_a_larger_one_reads_the_order_and_where_it_is_set(
    answering: Answering, tmp_path: Path, command: str, spec: Tree, said: str
) -> None:
    api = ApiOfObjects(lists(a_stored_pod("small", gate="gpu-tiers.dev/quota"), quotas=(a_queue(**spec),)))
    lines = says(answering, tmp_path, api, command, "small")
    assert [said in line for line in lines].count(True) == 1, lines
    if command == "why-pending":
        assert lines[2].startswith("It waits for 2 GPUs behind Pod/large (needs 4 GPUs), "), "the conclusion"
        assert lines[2].endswith("It starts by itself.")
        assert "Tiers with room for it now: gpu-training (no limit), " in "\n".join(lines)


@pytest.mark.parametrize("names", [True, False])
def test_who_waits_for_a_flavor_that_it_does_not_name_reads_so(
    answering: Answering, tmp_path: Path, *, names: bool
) -> None:
    pod, quota = a_stored_pod("large", gate="gpu-tiers.dev/quota"), a_queue()
    pod["spec"]["nodeSelector"] = {"gpu": "h100"} if names else {}
    quota["spec"]["quotas"] = [{"gpus": "4", "resourceFlavor": "h100"}]
    quota["status"]["usage"] = [{"resourceFlavor": "h100", "hard": "4", "used": "2"}]
    quota["status"]["queue"]["entries"][0]["short"] = "h100"
    flavors = [{"name": "h100", "nodeLabels": {"gpu": "h100"}}]
    api = ApiOfObjects(lists(pod, quotas=(quota,)))
    lines = says(answering, tmp_path, api, "why-pending", "large", resourceFlavors=flavors)
    assert "of h100" in lines[2], lines
    assert any(line.startswith("It names no flavor") for line in lines) != names, lines


def test_nobody_is_offered_a_tier_that_they_may_not_name(answering: Answering, tmp_path: Path) -> None:
    api = ApiOfObjects(lists(a_stored_pod("small", gate="gpu-tiers.dev/quota"), quotas=(a_queue(),)))
    lines = says(answering, tmp_path, api, "why-pending", "small", tierAccess="RBAC")
    assert not any("Tiers with room" in line for line in lines), lines


@pytest.mark.parametrize(
    ("asked_about", "whose", "scaled"),
    [("large", "Its own", "it"), ("small", "Pod/large comes before it, and its own", "Pod/large")],
)
def test_nobody_is_told_to_wait_for_a_workload_that_fills_the_row_by_itself(
    answering: Answering, tmp_path: Path, asked_about: str, whose: str, scaled: str
) -> None:
    """Somebody scaled it to 6 GPUs, and the row allows 4."""
    queued = [a_stored_pod(name, gate="gpu-tiers.dev/quota") for name in ("large", "small")]
    runs = a_stored_pod("runs", node="node-a", phase="Running")
    for pod in (queued[0], runs):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-large", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
    maker = {"metadata": {"name": "web", "namespace": "team-alpha", "uid": "uid-large"}}
    api = ApiOfObjects(lists(*queued, runs, quotas=(a_queue(),), **{"/apis/apps/v1/replicasets": [maker]}))
    lines = says(answering, tmp_path, api, "why-pending", asked_about)
    said = f"{whose} pods use 2 of the 4 GPUs of gpu-batch, so waiting does not help: scale {scaled} down."
    assert lines[2].endswith(said)
    assert "by itself" not in lines[2]


# --- nodes that are reserved for devices


def dra_lists(cluster: DraCluster, *configurations: Tree) -> dict[str, Any]:
    selector = f"device.driver == '{DEVICE_CLASS}'"
    resource = "/apis/resource.k8s.io/v1"
    return lists(
        *({"apiVersion": "v1", "kind": "Pod"} | each for each in cluster.pods.values()),
        **{
            NODES: [*cluster.nodes.values()],
            f"{resource}/deviceclasses": [a_device_class(DEVICE_CLASS, selector).json()],
            f"{resource}/resourceslices": cluster.slices,
            f"{resource}/resourceclaims": [*cluster.claims.values()],
            f"{resource}/devicetaintrules": [],
            CONFIGURATIONS: [*configurations],
        },
    )


def a_full_node(*, lower_in: str = "team-alpha") -> DraCluster:
    """A node whose only device a lower pod uses, and a pod that waits for it."""
    cluster = DraCluster()
    cluster.node("node-a")
    lower = cluster.running("lower", "node-a")
    lower["metadata"]["namespace"] = lower_in
    for claim in cluster.claims.values():
        claim["metadata"]["namespace"] = lower_in
    cluster.waiting("high", since=SINCE_A_MINUTE)
    return cluster


def exempting(*namespaces: str) -> Tree:
    line = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [*namespaces]}
    entry = {"name": "pods.validate.gpu-tiers.dev", "namespaceSelector": {"matchExpressions": [line]}}
    return {"metadata": {"name": "gpu-tiers"}, "webhooks": [entry]}


@pytest.mark.parametrize("exempt", [False, True])
def test_a_pod_in_an_exempt_namespace_is_not_said_to_be_evicted(
    answering: Answering, tmp_path: Path, exempt: bool
) -> None:
    configuration = exempting("kube-system", *(["drivers"] if exempt else []))
    api = ApiOfObjects(dra_lists(a_full_node(lower_in="drivers"), configuration))
    text = "\n".join(says(answering, tmp_path, api, "why-pending", "high"))
    assert ("gpu-tiers: will reserve node-a for it, to evict drivers/lower there" in text) is not exempt, text
    assert ("no: lower priority, but its namespace is exempt" in text) is exempt, text


UNTIL = time.time() + 90


def reserved(cluster: DraCluster) -> DraCluster:
    found = Reservation("high", "team-alpha/high", ("high",), "gpu-training", ("node-a",), UNTIL - 99, UNTIL)
    node = cluster.nodes["node-a"]
    node["metadata"]["annotations"] = {RESERVATION: msgspec.json.encode(found).decode()}
    node["spec"]["taints"] = [{"key": RESERVED, "value": "gpu-training", "effect": "NoSchedule"}]
    return cluster


RESERVED_UNTIL = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(UNTIL))


@pytest.mark.parametrize("command", [("posture",), ("explain", "high"), ("why-pending", "high")], ids=" ".join)
def test_a_reserved_node_is_reported_with_its_pod_and_its_end(
    answering: Answering, tmp_path: Path, command: tuple[str, ...]
) -> None:
    api = ApiOfObjects(dra_lists(reserved(a_full_node())) | {"/api/v1/configmaps": [IN_FORCE]})
    text = "\n".join(says(answering, tmp_path, api, *command))
    assert f"eserved for team-alpha/high (gpu-training) until {RESERVED_UNTIL}: node-a." in text


def test_a_pod_for_which_nothing_is_reserved_reads_nothing_of_it(answering: Answering, tmp_path: Path) -> None:
    api = ApiOfObjects(dra_lists(reserved(a_full_node())))
    assert "eserved for" not in "\n".join(says(answering, tmp_path, api, "explain", "lower"))


IN_FORCE = {
    "metadata": {"namespace": "gpu-tiers", "name": "gpu-tiers"},
    "data": {"policy.yaml": policy_file(preset="four-tier", preemption={"dra": "On"})},
}
