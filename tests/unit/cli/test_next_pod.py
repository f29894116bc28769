"""A person asks why a workload's pods are refused: what the next pod meets, and what helps it."""

from decimal import Decimal
from pathlib import Path

import pytest

from tests.builders import a_deployment, a_job, a_pod, a_tenant
from tests.builders.api import ApiOfObjects
from tests.builders.built import Tree
from tests.builders.pods import GPU
from tests.unit.cli.conftest import Answering
from tests.unit.cli.test_person_asks import a_stored_pod, lists, says
from tests.unit.cli.test_person_waits import (
    DEPLOYMENTS,
    OVER_QUOTA,
    REPLICASETS,
    a_full_row,
    a_rollout,
    an_event,
    owned,
    stored,
)
from webhook.ledger.account import Account, Entry, written_account
from webhook.objects.view import at
from webhook.policy.quota.charges import Charge

CONDITIONS = [{"type": each, "status": "True"} for each in ("Ready", "Exact", "GangsWhole")]


def counted(tenant: Tree, *wants: Charge, **status: object) -> Tree:
    """A TenantQuota whose leader has counted pods of the team with these charges."""
    entries = (Entry(wants=wants),) if wants else ()
    if at({"queue": {}, **status}, "queue.workloads") and not wants:  # the head reserves all of its row
        reserves = {"gpu-training": Decimal(1)}
        entries = (Entry(uid="uid", namespace="team-alpha", state="ForQueue", reserves=reserves, rank=1000),)
    account = Account(namespaces={"team-alpha": "open"}, entries=entries).sealed("")
    return tenant | {"status": {"ledger": written_account(account), "conditions": CONDITIONS, **status}}


# --- a rollout, whose old pods use hours too


USED_UP = {
    "per": "Month",
    "timeZone": "UTC",
    "from": "2026-11-01T00:00:00Z",
    "until": "2026-12-01T00:00:00Z",
    "since": "2026-11-01T00:00:00Z",
    "asOf": "2026-11-20T00:00:00Z",
    "usedGpuSeconds": "36000",
}


def out_of_hours(on_exhausted: str, tier: str | None = "gpu-batch", total: str = "2", *others: Charge) -> Tree:
    """A tenant whose only pod uses 2 GPUs of gpu-batch, and whose 10 GPU-hours are used up."""
    of = {"tier": tier} if tier else {}
    budget = {"gpuHours": 10, "per": "Month", "onExhausted": on_exhausted, **of}
    tenant = a_tenant(budgets=[budget], demoteTo=["gpu-interactive"]).allowing(total)
    own = Charge(Decimal(2), "gpu-batch")
    return counted(tenant.json(), own, *others, budgets=[{**USED_UP, **of}])


@pytest.mark.parametrize(
    "quota",
    [
        out_of_hours("Deny"),
        out_of_hours("Hold"),
        out_of_hours("Deny", tier=None),
        out_of_hours("Demote", tier=None),
    ],
    ids=["Deny", "Hold", "Deny, of every tier", "Demote, which leaves no lower tier"],
)
@pytest.mark.parametrize("gated", [False, True])
def test_nobody_ends_the_old_pods_of_a_rollout_for_hours_that_are_used_up(
    answering: Answering, tmp_path: Path, quota: Tree, gated: bool
) -> None:
    """The old pod runs on; a new one has to wait for new hours, also in its place."""
    text = "\n".join(says(answering, tmp_path, a_rollout(quota, gated=gated), "why-pending", "deployment/web"))
    assert "stuck" not in text
    assert "maxSurge" not in text


def test_who_waits_for_hours_reads_when_there_are_new_ones_and_no_other_time(
    answering: Answering, tmp_path: Path
) -> None:
    """Pods whose deadline is known bring GPUs, and no hours."""
    quota = out_of_hours("Hold")
    entry = {
        "namespace": "team-alpha",
        "workload": "Pod/p",
        "uid": "uid-p",
        "tier": "gpu-batch",
        "pods": 1,
        "gpus": "2",
    }
    line = {"entries": [{**entry, "short": "GPU-hours of gpu-batch"}], "pods": 1, "workloads": 1}
    quota["status"]["queue"] = line
    api = ApiOfObjects(lists(a_stored_pod("p", gate="gpu-tiers.dev/quota"), quotas=(quota,)))
    text = "\n".join(says(answering, tmp_path, api, "why-pending", "p"))
    assert "new hours on 1 December 2026" in text
    assert "It has room by" not in text


@pytest.mark.parametrize("on_exhausted", ["Demote", "Warn"])
def test_a_rollout_without_hours_is_stuck_where_its_new_pod_runs_in_the_place_of_an_old_one(
    answering: Answering, tmp_path: Path, on_exhausted: str
) -> None:
    lines = says(answering, tmp_path, a_rollout(out_of_hours(on_exhausted)), "why-pending", "deployment/web")
    assert lines[2].startswith("The rollout is stuck: its old pods use the quota that its new pods need"), lines


@pytest.mark.parametrize(("on_exceed", "gated"), [("Deny", False), ("Hold", True)])
def test_a_rollout_is_not_stuck_where_its_new_pod_has_no_room_in_the_place_of_an_old_one(
    answering: Answering, tmp_path: Path, on_exceed: str, gated: bool
) -> None:
    """The quota was lowered: the pods of others alone use all of it."""
    quota = counted(a_full_row("4", onExceed=on_exceed), Charge(Decimal(4), "gpu-batch"))
    lines = says(answering, tmp_path, a_rollout(quota, gated=gated), "why-pending", "deployment/web")
    assert "stuck" not in "\n".join(lines)


# --- a Deployment whose label changed since its pod was refused


def a_relabelled(quota: Tree, message: str = OVER_QUOTA, **more: list[Tree]) -> ApiOfObjects:
    """A Deployment of one pod of 1 GPU, refused as gpu-batch and now labelled gpu-training."""
    m4 = stored(a_deployment(a_pod().asking(1), "m4").json())
    m4["metadata"]["labels"] = {"gpu-tiers.dev/tier": "gpu-training"}
    maker = {"metadata": {"name": "m4-1", "namespace": "team-alpha", "uid": "uid-m4-1"}}
    made = {DEPLOYMENTS: [m4], REPLICASETS: [owned(maker, "Deployment", "m4")]}
    refused = an_event("FailedCreate", "ReplicaSet", "m4-1", message)
    return ApiOfObjects(lists(quotas=(quota,), **made, **more) | {"/api/v1/events": [refused]})


def a_mix(used: int, queued: int, *budgets: Tree) -> Tree:
    """A tenant that refuses beyond gpu-batch and queues beyond gpu-training."""
    rows = [
        {"gpus": 6},
        {"tier": "gpu-training", "gpus": 1, "onExceed": "Hold"},
        {"tier": "gpu-batch", "gpus": 2},
    ]
    spec = {"quotas": rows, "budgets": [{"gpuHours": 10, **each} for each in budgets]}
    entry = {"namespace": "team-alpha", "uid": "uid", "tier": "gpu-training", "pods": 1, "gpus": "1", "since": ""}
    line = [{**entry, "workload": f"Job/m{nth}", "short": "gpu-training"} for nth in range(queued)]
    queue = {"pods": queued, "workloads": queued, "entries": line}
    uses = (Charge(Decimal(used), "gpu-training"),) if used else ()
    return counted(
        a_tenant("mix", **spec).json(), *uses, queue=queue, budgets=[{**USED_UP, **each} for each in budgets]
    )


HELD = {"per": "Month", "tier": "gpu-training", "onExhausted": "Hold"}
NEXT_PODS = {
    "no room": (
        a_mix(1, 2),
        (
            "The next try should pass, and its pod is queued: tenant mix uses 1 of 1 of gpu-training, and 2 workloads "
            "wait in its queue. The order is Strict (holdOrder of TenantQuota/mix): "
        ),
    ),
    "behind others": (
        a_mix(0, 2),
        (
            "The next try should pass, and its pod is queued: tenant mix uses 0 of 1 of gpu-training, plus 1 reserved "
            "for pods queued earlier, and 2 workloads wait in its queue. The order is "
        ),
    ),
    "no hours": (
        a_mix(0, 0, HELD),
        "The next try should pass, and its pod is queued: tenant mix: 10 of 10 GPU-hours of gpu-training are used",
    ),
    "room": (a_mix(0, 0), "There is room now: the next try should pass."),
}


@pytest.mark.parametrize(("quota", "said"), NEXT_PODS.values(), ids=NEXT_PODS)
def test_a_workload_whose_next_pod_is_queued_reads_so(
    answering: Answering, tmp_path: Path, quota: Tree, said: str
) -> None:
    lines = says(answering, tmp_path, a_relabelled(quota), "why-pending", "deployment/m4")
    assert [line for line in lines if line.startswith(said)], lines
    assert any(line.startswith("To have it tried at once: ") for line in lines), "it takes its position earlier"


def test_room_in_the_tenants_quota_is_not_room_in_a_resource_quota(answering: Answering, tmp_path: Path) -> None:
    native: Tree = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "team-alpha"},
    }
    native |= {"spec": {"hard": {f"requests.{GPU}": "1"}}}
    native |= {"status": {"hard": {f"requests.{GPU}": "1"}, "used": {f"requests.{GPU}": "1"}}}
    api = a_relabelled(a_mix(0, 0), **{"/api/v1/resourcequotas": [native]})
    text = "\n".join(says(answering, tmp_path, api, "why-pending", "deployment/m4"))
    assert "The tenant's quota has room now, but ResourceQuota/gpus leaves 0 GPUs." in text
    assert "To have it tried at once" not in text


# --- refusals of others, and of a workload that makes workloads


OTHERS = {
    "a ResourceQuota": ('pods "m4-x" is forbidden: exceeded quota: all, requested: pods=1, used: pods=9', False),
    "another webhook": ('admission webhook "images.example.com" denied the request: unsigned', True),
}


@pytest.mark.parametrize(("message", "helps"), OTHERS.values(), ids=OTHERS)
def test_a_try_at_once_is_no_advice_while_a_resourcequota_is_full(
    answering: Answering, tmp_path: Path, message: str, helps: bool
) -> None:
    api = a_relabelled(a_mix(0, 0), message)
    text = "\n".join(says(answering, tmp_path, api, "why-pending", "deployment/m4"))
    assert "Another webhook or a ResourceQuota refuses them" in text
    assert ("To have it tried at once" in text) is helps


def test_a_cronjob_reads_that_its_job_is_refused(answering: Answering, tmp_path: Path) -> None:
    job = a_job(a_pod().asking(4)).json()
    nightly = {"schedule": "0 3 * * *", "jobTemplate": {"spec": job["spec"]}}
    metadata = {"name": "nightly", "namespace": "team-alpha"}
    cron = stored({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": nightly})
    refused = an_event("FailedCreate", "CronJob", "nightly", OVER_QUOTA)
    refused["involvedObject"]["apiVersion"] = "batch/v1"
    api = ApiOfObjects(lists(**{"/apis/batch/v1/cronjobs": [cron]}) | {"/api/v1/events": [refused]})
    lines = says(answering, tmp_path, api, "why-pending", "cronjob/nightly")
    assert lines[2] == "Its Job is refused at admission: exceeded quota: no room [over-quota]"
