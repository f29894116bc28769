"""Budgets of GPU-hours and grants on a real control plane, in periods of seconds."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from .installed import Installed, Tree, gpu_pod
from .queue import GATE

pytestmark = pytest.mark.apiserver

LASTS = 18.0
"""Seconds of a budget's period."""


def rfc3339(seconds_from_now: float) -> str:
    return datetime.fromtimestamp(time.time() + seconds_from_now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_budget(gpu_seconds: float, lasts: float = LASTS, **more: object) -> Tree:
    """A budget of so many GPU-seconds that begins now."""
    hours = str(round(Decimal(gpu_seconds) / 3600, 6))
    return {"tier": "gpu-training", "gpuHours": hours, "from": rfc3339(-1), "until": rfc3339(lasts), **more}


def training(name: str, node: str, gpus: int = 2) -> Tree:
    return gpu_pod(name, gpus, tier="gpu-training", node=node)


def runs(installed: Installed, namespace: str, name: str) -> bool:
    return bool(installed.get(f"pod/{name}", namespace)["status"]["phase"] == "Running")


def used_up(installed: Installed, tenant: str) -> Callable[[], bool]:
    return lambda: installed.condition(tenant, "WithinBudgets").get("reason") == "UsedUp"


def test_what_is_created_after_its_end_is_refused_what_runs_runs_on_and_new_hours_open_again(
    installed: Installed, namespace: str, wide: str
) -> None:
    with installed.tenant_for(f"of-{namespace}", namespace, quotas=[{"gpus": 8}], budgets=[a_budget(6)]) as tenant:
        until = time.time() + LASTS
        assert installed.create(training("first", wide), namespace).code == 0
        installed.eventually(lambda: runs(installed, namespace, "first"), "the first pod to run")
        installed.eventually(used_up(installed, tenant), "its hours are used up")
        refused = installed.create(training("second", wide), namespace)
        assert "[budget-used-up]" in refused.stderr
        assert "GPU-hours of gpu-training are used (the budget ends on " in refused.stderr
        assert "; this pod asks for 2 GPUs" in refused.stderr
        other = gpu_pod("other", 2, tier="gpu-batch", node=wide)
        assert installed.create(other, namespace).code == 0, "another tier has its own hours"
        assert runs(installed, namespace, "first")
        assert installed.messages(namespace="default", selector=f"involvedObject.name={tenant}").count("GPU-hours") >= 1
        time.sleep(max(until - time.time(), 0))
        installed.eventually(lambda: installed.create(training("later", wide), namespace).code == 0, "new hours")


def test_a_budget_that_holds_queues_until_there_are_new_hours(installed: Installed, namespace: str, wide: str) -> None:
    budget = a_budget(2, onExhausted="Hold")
    with installed.tenant_for(f"of-{namespace}", namespace, quotas=[{"gpus": 8}], budgets=[budget]) as tenant:
        assert installed.create(training("first", wide), namespace).code == 0
        installed.eventually(used_up(installed, tenant), "its hours are used up")
        assert installed.create(training("second", wide), namespace).code == 0
        assert GATE in installed.get("pod/second", namespace)["spec"]["schedulingGates"]

        def why() -> str:
            conditions = installed.get("pod/second", namespace)["status"].get("conditions", [])
            return "".join(each.get("message", "") for each in conditions)

        installed.eventually(lambda: "GPU-hours of gpu-training are used" in why(), "the pod says what it waits for")
        installed.eventually(lambda: runs(installed, namespace, "second"), "it runs with the new hours")


def test_a_budget_that_demotes_and_one_that_warns(installed: Installed, namespace: str, wide: str) -> None:
    demotes, warns = a_budget(1, 60, onExhausted="Demote"), a_budget(1, 61, tier="gpu-batch", onExhausted="Warn")
    with installed.tenant_for(f"of-{namespace}", namespace, quotas=[{"gpus": 8}], budgets=[demotes, warns]) as tenant:
        for tier in ("gpu-training", "gpu-batch"):
            assert installed.create(gpu_pod(f"in-{tier}", 2, tier=tier, node=wide), namespace).code == 0

        def both_used_up() -> bool:
            found = installed.get(f"tenantquota/{tenant}", "").get("status", {}).get("budgets", [])
            return len(found) == 2 and all(float(each["usedGpuSeconds"]) > 1 for each in found)

        installed.eventually(both_used_up, "both budgets used up")
        lower = installed.create(training("second", wide), namespace)
        assert "gpu-batch" in lower.stderr
        assert installed.get("pod/second", namespace)["spec"]["priorityClassName"] == "gpu-batch"


def test_hours_go_on_over_another_leader_and_a_tenantquota_that_is_made_again(
    installed: Installed, namespace: str, wide: str
) -> None:
    name, spec = f"of-{namespace}", {"quotas": [{"gpus": 8}], "budgets": [a_budget(40, 300)]}

    def used() -> float:
        budgets = installed.get(f"tenantquota/{name}", "").get("status", {}).get("budgets") or [{}]
        return float(budgets[0].get("usedGpuSeconds", 0))

    with installed.tenant_for(name, namespace, **spec):
        assert installed.create(training("first", wide), namespace).code == 0
        installed.eventually(lambda: runs(installed, namespace, "first"), "it to run")
        began = time.time()
        installed.eventually(
            lambda: "WithinBudgets" in str(installed.get(f"tenantquota/{name}", "")["status"]), "a note"
        )
        installed.change_leader()
        installed.eventually(lambda: used() > 0, "the next leader has counted")
        installed.api.delete("pod/first", namespace=namespace)
        ran = 2 * (time.time() - began)
        installed.eventually(lambda: ran - 4 <= used() <= ran + 8, f"some {ran} GPU-seconds")
        before = used()
        installed.api.delete(f"tenantquota/{name}")
        installed.tenant(name, namespace, **spec)
        installed.eventually(lambda: used() >= before, "the hours of its name")


def test_a_grant_raises_its_row_for_a_time(installed: Installed, namespace: str, wide: str) -> None:
    grant = {"gpus": 2, "from": rfc3339(-1), "until": rfc3339(12), "reason": "paper"}
    with installed.tenant_for(f"of-{namespace}", namespace, quotas=[{"gpus": 2}], grants=[grant]) as tenant:
        installed.eventually(lambda: installed.usage(tenant) == "total 0/4", "the grant applies")
        says = "the total has 2 GPUs more until"
        installed.eventually(lambda: says in installed.condition(tenant, "Ready")["message"], says)
        assert installed.create(training("four", wide, 4), namespace).code == 0
        installed.eventually(lambda: installed.condition(tenant, "Ready")["reason"] == "OverQuota", "its end")
        assert installed.usage(tenant) == "total 4/2"
        assert installed.get("pod/four", namespace)["metadata"].get("deletionTimestamp") is None
        assert "[too-large]" in installed.create(training("more", wide, 4), namespace).stderr
