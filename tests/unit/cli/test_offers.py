"""explain offers what is so: the tiers that would take an object now, and commands that bring it there."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.builders import a_deployment, a_job, a_pod, a_replicaset, a_tenant, a_workload
from tests.builders.api import ApiOfObjects
from tests.builders.built import Built, Tree
from tests.unit.cli.conftest import Answering
from tests.unit.cli.test_next_pod import USED_UP
from tests.unit.cli.test_person_asks import a_stored_pod, lists, says
from tests.unit.cli.test_person_waits import DEPLOYMENTS, JOBS, REPLICASETS, owned, stored
from webhook.ledger.account import Account, Entry, written_account
from webhook.policy.quota.charges import Charge

TIER = "gpu-tiers.dev/tier"
RESOURCEQUOTAS = "/api/v1/resourcequotas"
STATEFULSETS = "/apis/apps/v1/statefulsets"


def a_quota(*used: Entry, rows: dict[str | None, int], **spec: object) -> Tree:
    """A TenantQuota whose account has these entries."""
    builder = a_tenant(**spec)
    for tier, gpus in rows.items():
        builder = builder.allowing(gpus, tier=tier)
    tree = builder.having("metadata.uid", "q").json()
    account = Account(namespaces={"team-alpha": "open"}, entries=used).sealed("q")
    conditions = [{"type": each, "status": "True"} for each in ("Ready", "Exact", "GangsWhole")]
    return tree | {"status": {"ledger": written_account(account), "conditions": conditions}}


def uses(uid: str, gpus: int, tier: str) -> Entry:
    return Entry(uid=uid, namespace="team-alpha", state="Used", wants=(Charge(Decimal(gpus), tier),))


def reserved(uid: str, gpus: int, rank: int, row: str) -> Entry:
    """GPUs of a row that are reserved for the head of the queue, of a tier of this value."""
    reserves = {row: Decimal(gpus)}
    return Entry(uid=uid, namespace="team-alpha", state="ForQueue", reserves=reserves, rank=rank)


def of_tier(built: Built, tier: str, **status: object) -> Tree:
    tree = stored(built.json())
    tree["metadata"]["labels"] = {TIER: tier}
    return tree | {"status": status}


def explains(answering: Answering, folder: Path, what: str, quota: Tree, *pods: Tree, **kinds: Any) -> str:
    return "\n".join(says(answering, folder, ApiOfObjects(lists(*pods, quotas=(quota,), **kinds)), "explain", what))


def test_a_queued_job_has_no_gpus_that_another_tier_could_have(answering: Answering, tmp_path: Path) -> None:
    """The tenant's quota queued it, and refuses now."""
    job = of_tier(a_job(a_pod().asking(2), name="later"), "gpu-batch")
    queued = owned(a_stored_pod("later-1", gate="gpu-tiers.dev/quota"), "Job", "later", "batch/v1")
    quota = a_quota(uses("other", 4, "gpu-serving"), rows={None: 4})
    said = explains(answering, tmp_path, "job/later", quota, queued, **{JOBS: [job]})
    assert "No other tier is open to it: in TenantQuota/alpha the total is at 4 of 4 GPUs" in said


@pytest.mark.parametrize(
    ("has_room", "unavailable", "first"),
    [
        (True, "25%", ""),
        (False, "25%", "(first set spec.strategy.rollingUpdate.maxSurge: 0, as"),
        (False, 0, "(first set maxSurge: 0 and maxUnavailable: 1, as"),
    ],
)
def test_a_rollout_needs_room_beside_its_old_pods(
    answering: Answering, tmp_path: Path, has_room: bool, unavailable: object, first: str
) -> None:
    web = of_tier(a_deployment(a_pod().asking(2), name="web"), "gpu-batch", replicas=1, updatedReplicas=1)
    web["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": unavailable}}
    made = owned(stored(a_workload("apps/v1", "ReplicaSet", "web-1").json()), "Deployment", "web")
    pod = owned(a_stored_pod("web-1-a", node="node-a", phase="Running"), "ReplicaSet", "web-1")
    quota = a_quota(uses("uid-web-1-a", 2, "gpu-batch"), rows={None: 4 if has_room else 2})
    said = explains(answering, tmp_path, "deployment/web", quota, pod, **{DEPLOYMENTS: [web], REPLICASETS: [made]})
    assert "kubectl rollout restart deployment/web" in said
    assert first in said
    assert ("first set" in said) is bool(first)


def test_the_pod_that_blocks_a_statefulset_is_deleted(answering: Answering, tmp_path: Path) -> None:
    db = of_tier(a_workload("apps/v1", "StatefulSet", "db"), "gpu-training", replicas=1, updatedReplicas=1)
    db["spec"] = {"replicas": 1, "serviceName": "db", "template": a_pod().asking(2).template()}
    pod = owned(a_stored_pod("db-0"), "StatefulSet", "db")
    said = explains(answering, tmp_path, "statefulset/db", a_quota(rows={None: 8}), pod, **{STATEFULSETS: [db]})
    assert "To have it now: kubectl delete pod db-0 -n team-alpha" in said
    assert "rollout restart" not in said


@pytest.mark.parametrize("owner", [True, False])
def test_the_next_pod_of_a_controller_takes_the_slot_of_the_old_one(
    answering: Answering, tmp_path: Path, owner: bool
) -> None:
    """A full queue lets it in at once; a pod that nobody makes again is a new one."""
    made = of_tier(a_workload("apps/v1", "ReplicaSet", "web", replicas=1), "gpu-batch", replicas=1)
    pod = a_stored_pod("web-a", node="node-a", phase="Running")
    head = reserved("uid-web-b", 2, 400, "total")
    quota = a_quota(uses("uid-web-a", 2, "gpu-batch"), head, rows={None: 2}, onExceed="Hold")
    quota["status"]["queue"] = {"workloads": 1, "pods": 1}
    pods = [owned(pod, "ReplicaSet", "web") if owner else pod]
    said = explains(answering, tmp_path, "web-a", quota, *pods, **{REPLICASETS: [made]})
    assert ("is queued:" in said) is not owner, json.dumps(said)
    if owner:
        of_workload = explains(answering, tmp_path, "replicaset/web", quota, *pods, **{REPLICASETS: [made]})
        assert "is queued:" not in of_workload


def test_the_next_pod_of_a_replicaset_that_has_all_its_pods_has_the_room_of_an_old_one(
    answering: Answering, tmp_path: Path
) -> None:
    """Nobody counts the updated pods of a ReplicaSet, because it replaces none when its template changes."""
    bare = of_tier(a_replicaset(a_pod().asking(2), name="bare"), "gpu-batch", replicas=1)
    pod = owned(a_stored_pod("bare-a", node="node-a", phase="Running"), "ReplicaSet", "bare")
    full = a_quota(uses("uid-bare-a", 2, "gpu-batch"), rows={None: 2})
    said = explains(answering, tmp_path, "replicaset/bare", full, pod, **{REPLICASETS: [bare]})
    assert "would be refused now" not in said


def test_a_demoted_deployment_whose_next_pod_is_refused_is_not_restarted(answering: Answering, tmp_path: Path) -> None:
    web = of_tier(
        a_deployment(a_pod().asking(2), name="web", replicas=2), "gpu-training", replicas=1, updatedReplicas=1
    )
    made = owned(stored(a_workload("apps/v1", "ReplicaSet", "web-1").json()), "Deployment", "web")
    pod = owned(a_stored_pod("web-1-a", node="node-a", phase="Running"), "ReplicaSet", "web-1")
    entries = uses("other", 2, "gpu-training"), uses("uid-web-1-a", 2, "gpu-batch")
    quota = a_quota(*entries, rows={"gpu-training": 2, "gpu-batch": 2, "gpu-interactive": 0}, onExceed="Demote")
    said = explains(answering, tmp_path, "deployment/web", quota, pod, **{DEPLOYMENTS: [web], REPLICASETS: [made]})
    assert "would be refused now" in said
    assert "rollout restart" not in said


@pytest.mark.parametrize(
    ("tier", "rows", "waits"),
    [
        ("gpu-serving", {"gpu-batch": 8, "gpu-serving": 1}, False),
        ("gpu-serving", {None: 8, "gpu-serving": 1}, True),
        ("gpu-batch", {"gpu-batch": 8}, True),
        ("gpu-interactive", {None: 8}, False),
    ],
)
def test_a_queue_on_another_row_or_of_a_lower_tier_keeps_nobody_back(
    answering: Answering, tmp_path: Path, tier: str, rows: dict[str | None, int], waits: bool
) -> None:
    value = {"gpu-serving": 800, "gpu-batch": 400, "gpu-interactive": 200}[tier]
    head = reserved("uid-head", 8, value, "total" if None in rows else tier)
    quota = a_quota(head, rows=rows, onExceed="Hold")
    quota["status"]["queue"] = {"workloads": 1, "pods": 1, "entries": [{"tier": tier, "gpus": "1", "pods": 1}]}
    said = explains(answering, tmp_path, "alone", quota, a_stored_pod("alone"))
    assert ("reserved for pods queued earlier, and 1 workload waits" in said) is waits


@pytest.mark.parametrize(
    "strategy", [{"type": "OnDelete"}, {"rollingUpdate": {"partition": 5}}, {"type": "RollingUpdate"}]
)
def test_pods_that_no_rollout_replaces_are_deleted(
    answering: Answering, tmp_path: Path, strategy: dict[str, Any]
) -> None:
    db = of_tier(a_workload("apps/v1", "StatefulSet", "db"), "gpu-training", replicas=2, updatedReplicas=2)
    template = a_pod().asking(2).template()
    db["spec"] = {"replicas": 2, "serviceName": "db", "template": template, "updateStrategy": strategy}
    pods = [owned(a_stored_pod(f"db-{n}", node="node-a", phase="Running"), "StatefulSet", "db") for n in range(2)]
    pods[0]["spec"]["priorityClassName"] = "gpu-training"
    for each in pods:
        each["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    said = explains(answering, tmp_path, "statefulset/db", a_quota(rows={None: 8}), *pods, **{STATEFULSETS: [db]})
    by_itself = strategy == {"type": "RollingUpdate"}
    assert ("kubectl rollout restart statefulset/db" in said) is by_itself
    assert ("kubectl delete pod db-1 -n team-alpha" in said) is not by_itself, "db-0 has the tier by now"


def test_a_paused_deployment_without_pods_waits_for_no_quota(answering: Answering, tmp_path: Path) -> None:
    web = of_tier(a_deployment(a_pod().asking(2), name="web"), "gpu-batch")
    web["spec"]["paused"] = True
    quota = a_quota(uses("other", 2, "gpu-batch"), rows={None: 2})
    api = ApiOfObjects(lists(quotas=(quota,), **{DEPLOYMENTS: [web]}))
    assert "It is paused (spec.paused)" in "\n".join(says(answering, tmp_path, api, "why-pending", "deployment/web"))


def test_no_slot_is_filled_again_before_there_are_new_hours(answering: Answering, tmp_path: Path) -> None:
    made = of_tier(a_workload("apps/v1", "ReplicaSet", "web", replicas=1), "gpu-batch", replicas=1)
    made["spec"] = {"replicas": 1, "template": a_pod().asking(2).template()}
    pod = owned(a_stored_pod("web-a", node="node-a", phase="Running"), "ReplicaSet", "web")
    budget = {"gpuHours": 10, "per": "Month", "onExhausted": "Hold", "tier": "gpu-batch"}
    quota = a_quota(uses("uid-web-a", 2, "gpu-batch"), rows={None: 4}, budgets=[budget])
    quota["status"]["budgets"] = [{**USED_UP, "tier": "gpu-batch"}]
    said = explains(answering, tmp_path, "replicaset/web", quota, pod, **{REPLICASETS: [made]})
    assert "is queued: tenant alpha: 10 of 10 GPU-hours of gpu-batch are used" in said


def test_a_gang_that_never_fits_reads_that_it_never_starts(answering: Answering, tmp_path: Path) -> None:
    """The quota was lowered while it was queued."""
    job = of_tier(a_job(a_pod().asking(2), name="later", parallelism=3), "gpu-batch")
    queued = owned(a_stored_pod("later-1", gate="gpu-tiers.dev/quota"), "Job", "later", "batch/v1")
    said = explains(answering, tmp_path, "job/later", a_quota(rows={None: 4}, onExceed="Hold"), queued, **{JOBS: [job]})
    assert "can never start: it asks for 6 GPUs in all, but tenant alpha may use 4 of the total" in said


def test_what_is_reserved_for_itself_closes_no_tier(answering: Answering, tmp_path: Path) -> None:
    head = reserved("uid-alone", 2, 400, "total")
    quota = a_quota(uses("other", 4, "gpu-batch"), head, rows={None: 6, "gpu-batch": 4}, onExceed="Hold")
    said = explains(answering, tmp_path, "alone", quota, a_stored_pod("alone", gate="gpu-tiers.dev/quota"))
    assert "(one of gpu-training, gpu-serving, gpu-interactive)" in said


def test_the_next_pod_of_a_deployment_that_is_scaled_beyond_its_row_is_queued(
    answering: Answering, tmp_path: Path
) -> None:
    """Its pods start one by one, so it may start once another one ends."""
    web = of_tier(a_deployment(a_pod().asking(1), name="web", replicas=6), "gpu-batch", replicas=4)
    made = owned(stored(a_workload("apps/v1", "ReplicaSet", "web-1").json()), "Deployment", "web")
    pods = [owned(a_stored_pod(f"web-1-{n}", node="node-a", phase="Running"), "ReplicaSet", "web-1") for n in range(2)]
    quota = a_quota(*(uses(f"uid-web-1-{n}", 2, "gpu-batch") for n in range(2)), rows={None: 4}, onExceed="Hold")
    said = explains(answering, tmp_path, "deployment/web", quota, *pods, **{DEPLOYMENTS: [web], REPLICASETS: [made]})
    assert "can never start" not in said


@pytest.mark.parametrize(("exhausted", "offered"), [("Deny", False), ("Warn", True)])
def test_a_tier_without_hours_is_not_offered_whatever_happens_above_the_rows(
    answering: Answering, tmp_path: Path, exhausted: str, offered: bool
) -> None:
    """The tenant only warns above its rows, but a pod without hours is refused."""
    budget = {"gpuHours": 10, "per": "Month", "onExhausted": exhausted, "tier": "gpu-training"}
    tiers = {"allowedTiers": ["gpu-batch", "gpu-training"], "onExceed": "Warn"}
    quota = a_quota(uses("other", 4, "gpu-training"), rows={"gpu-training": 4}, budgets=[budget], **tiers)
    quota["status"]["budgets"] = [{**USED_UP, "tier": "gpu-training"}]
    said = explains(answering, tmp_path, "alone", quota, a_stored_pod("alone"))
    assert ("[gpu-tiers.dev/tier]: gpu-training." in said) is offered
    assert ("is open to it: TenantQuota/alpha: 10 of 10 GPU-hours of gpu-training are used" in said) is not offered


@pytest.mark.parametrize("order", ["Strict", "BestEffort"])
@pytest.mark.parametrize("suspended", [True, False])
def test_a_gang_waits_for_room_for_all_of_its_pods(
    answering: Answering, tmp_path: Path, suspended: bool, order: str
) -> None:
    """The row has room for one of them."""
    job = of_tier(a_job(a_pod().asking(2), name="later", parallelism=2, suspend=suspended), "gpu-batch")
    queued = owned(a_stored_pod("later-1", gate="gpu-tiers.dev/quota"), "Job", "later", "batch/v1")
    pods = [] if suspended else [queued]
    quota = a_quota(uses("other", 2, "gpu-batch"), rows={"gpu-batch": 4}, onExceed="Hold", holdOrder=order)
    said = explains(answering, tmp_path, "job/later", quota, *pods, **{JOBS: [job]})
    assert "uses 2 of 4 of gpu-batch; all of its pods start together and ask for 4" in said


def test_a_gang_with_another_label_is_not_promised_room_for_one_pod(answering: Answering, tmp_path: Path) -> None:
    job = of_tier(a_job(a_pod().asking(2), name="later", parallelism=2), "gpu-training")
    queued = owned(a_stored_pod("later-1", gate="gpu-tiers.dev/quota"), "Job", "later", "batch/v1")
    entries = uses("a", 2, "gpu-batch"), uses("b", 2, "gpu-training")
    quota = a_quota(*entries, rows={"gpu-batch": 4, "gpu-training": 4}, onExceed="Hold")
    said = explains(answering, tmp_path, "job/later", quota, queued, **{JOBS: [job]})
    assert "To have it once the queue admits its next pod, delete and apply job/later again" in said


# --- all pods that a command replaces


def a_running(name: str, owner: str, kind: str = "ReplicaSet", tier: str = "gpu-batch", ready: str = "True") -> Tree:
    """A pod of 2 GPUs."""
    pod = owned(a_stored_pod(name, node="node-a", phase="Running"), kind, owner)
    pod["spec"]["priorityClassName"] = tier
    del pod["metadata"]["labels"]  # its workload names the tier
    return pod | {"status": pod["status"] | {"conditions": [{"type": "Ready", "status": ready}]}}


def a_service(tier: str, *, pods: int = 3, made_in: str = "", **strategy: object) -> tuple[list[Tree], dict[str, Any]]:
    """The pods of the Deployment web with the label of a tier, and the objects that make them."""
    web = of_tier(a_deployment(a_pod().asking(2), "web", pods), tier, replicas=pods, updatedReplicas=pods)
    web["spec"]["strategy"] = strategy
    made = owned(stored(a_workload("apps/v1", "ReplicaSet", "web-1").json()), "Deployment", "web")
    there = [a_running(f"web-1-{n}", "web-1", tier=made_in or tier) for n in range(pods)]
    return there, {DEPLOYMENTS: [web], REPLICASETS: [made]}


def two_gpus(name: str = "gpus") -> dict[str, Any]:
    hard = {"requests.nvidia.com/gpu": "2"}
    quota = {"metadata": {"name": name, "namespace": "team-alpha"}, "spec": {"hard": hard}}
    return {RESOURCEQUOTAS: [quota | {"status": {"hard": hard, "used": hard}}]}


def test_the_pods_that_leave_make_room_in_a_resourcequota_too(answering: Answering, tmp_path: Path) -> None:
    """The ResourceQuota allows 2 GPUs, which they use."""
    room = a_quota(rows={None: 8})
    alone = a_stored_pod("alone", node="node-a", phase="Running")
    assert "(one of gpu-training, " in explains(answering, tmp_path, "alone", room, alone, **two_gpus())
    pods, made = a_service("gpu-batch", pods=1, type="Recreate")
    said = explains(answering, tmp_path, "deployment/web", room, *pods, **made, **two_gpus())
    assert "tier=TIER (one of gpu-training, gpu-serving, gpu-interactive)" in said
    assert "first set" not in said
    rolled, made = a_service("gpu-batch", pods=1)
    assert "first set" in explains(answering, tmp_path, "deployment/web", room, *rolled, **made, **two_gpus())


def test_a_tier_with_room_for_some_of_its_pods_is_not_offered(answering: Answering, tmp_path: Path) -> None:
    """The first new pod would take the room, and the rollout would be refused from then on."""
    pods, made = a_service("gpu-training")
    entries = [uses(f"uid-web-1-{n}", 2, "gpu-training") for n in range(3)]
    tiers = {"allowedTiers": ["gpu-training", "gpu-batch"]}
    quota = a_quota(uses("other", 6, "gpu-batch"), *entries, rows={"gpu-batch": 8, "gpu-training": 16}, **tiers)
    for what in ("deployment/web", "web-1-0"):
        said = explains(answering, tmp_path, what, quota, *pods, **made)
        used = "in TenantQuota/alpha gpu-batch is at 6 of 8 GPUs without this workload"
        assert f"{used}, and its 3 pods ask for 6" in said
        assert "kubectl label" not in said


def test_a_full_tier_that_queues_says_so(answering: Answering, tmp_path: Path) -> None:
    pods, made = a_service("gpu-batch", rollingUpdate={"maxSurge": 0})
    entries = [uses(f"uid-web-1-{n}", 2, "gpu-batch") for n in range(3)]
    rows = {"gpu-batch": 8, "gpu-training": 6}
    quota = a_quota(uses("other", 2, "gpu-training"), *entries, rows=rows, onExceed="Hold")
    said = explains(answering, tmp_path, "deployment/web", quota, *pods, **made)
    assert "(one of gpu-training, gpu-serving, gpu-interactive)" in said
    without = "in TenantQuota/alpha gpu-training is at 2 of 6 GPUs without this workload, and its 3 pods ask for 6"
    assert f"Pods without room are queued: {without}." in said
    rows = {None: 8, "gpu-batch": 8}
    quota = a_quota(uses("other", 4, "gpu-training"), *entries, rows=rows, onExceed="Hold")
    of_all = "in TenantQuota/alpha the total is at 4 of 8 GPUs without this workload, and its 3 pods ask for 6"
    assert f"queued: {of_all}." in explains(answering, tmp_path, "deployment/web", quota, *pods, **made)


def test_nobody_has_a_tier_now_that_has_room_for_some_of_their_pods(answering: Answering, tmp_path: Path) -> None:
    """Somebody changed the label."""
    pods, made = a_service("gpu-training", made_in="gpu-batch", type="Recreate")
    entries = [uses(f"uid-web-1-{n}", 2, "gpu-batch") for n in range(3)]
    quota = a_quota(uses("other", 6, "gpu-training"), *entries, rows={"gpu-batch": 8, "gpu-training": 8})
    said = explains(answering, tmp_path, "deployment/web", quota, *pods, **made)
    assert "Not all of its pods have room there now: in TenantQuota/alpha gpu-training is at 6 of 8 GPUs" in said
    assert "rollout restart" not in said


def test_a_full_row_that_the_new_pods_do_not_use_needs_no_other_rollout(answering: Answering, tmp_path: Path) -> None:
    pods, made = a_service("gpu-batch", pods=1)
    quota = a_quota(uses("uid-web-1-0", 2, "gpu-batch"), rows={"gpu-batch": 2, "gpu-training": 8})
    said = explains(answering, tmp_path, "deployment/web", quota, *pods, **made)
    assert "kubectl rollout restart deployment/web" in said
    assert "first set" not in said


@pytest.mark.parametrize("asked_about", ["statefulset/db", "db-0"])
def test_a_statefulset_replaces_its_other_pods_once_the_one_that_blocks_it_is_deleted(
    answering: Answering, tmp_path: Path, asked_about: str
) -> None:
    db = of_tier(a_workload("apps/v1", "StatefulSet", "db"), "gpu-batch", replicas=2, updatedReplicas=2)
    db["spec"] = {"replicas": 2, "serviceName": "db", "template": a_pod().asking(2).template()}
    pods = [a_running(f"db-{n}", "db", "StatefulSet", ready=ready) for n, ready in enumerate(("True", "False"))]
    said = explains(answering, tmp_path, asked_about, a_quota(rows={None: 8}), *pods, **{STATEFULSETS: [db]})
    restart = "kubectl rollout restart statefulset/db -n team-alpha"
    assert f"until they are replaced: {restart}; kubectl delete pod db-1 -n team-alpha" in said


@pytest.mark.parametrize("named", ["gpu-batch", "gpu-interactive"])
def test_nobody_reads_that_they_may_name_a_tier_that_its_type_or_tenant_excludes(
    answering: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """RBAC lets them use all tiers, and gpu-interactive is refused for training."""

    async def allowed(*_: object) -> bool:
        return True

    monkeypatch.setattr("webhook.cli.explain.other_tiers.is_allowed", allowed)
    quota = a_quota(rows={None: 8}, allowedTiers=["gpu-training", "gpu-batch", "gpu-interactive"])
    job = of_tier(a_job(a_pod().asking(2).running("python", "train.py"), name="later"), named)
    policy = {"tierAccess": "RBAC", "allowedTiersByType": {"training": ["gpu-serving", "gpu-training", "gpu-batch"]}}
    api = ApiOfObjects(lists(quotas=(quota,), **{JOBS: [job]}))
    said = says(answering, tmp_path, api, "explain", "job/later", **policy)
    assert any("Tiers that you may name here: gpu-training, gpu-batch." in line for line in said), said
