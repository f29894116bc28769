"""What says that a node will end: each sign as its program writes it, and which of several counts."""

from typing import Any

import pytest

from tests.builders import Tree, a_policy
from webhook.objects.view import view
from webhook.policy.preemption.node_state import SchedulableNode
from webhook.policy.saves.node_signals import BUILT_IN, signal_of

NTH = "aws-node-termination-handler"
EVENT = "instance-action-0d59937288b749b32"
"""The value of the termination handler's taints: the id of the event."""


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Tree:
    return {"spec": {"taints": [{"key": key, "effect": effect} | ({"value": value} if value else {})]}}


def condition(type_: str, status: str = "True", reason: str = "AdminRequested") -> Tree:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {"status": {"conditions": [ready, {"type": type_, "status": status, "reason": reason}]}}


def label(key: str, value: str) -> Tree:
    return {"metadata": {"labels": {key: value}}}


WRITTEN = {
    "aws-spot-interruption": taint(f"{NTH}/spot-itn", EVENT),
    "gcp-termination": taint("cloud.google.com/impending-node-termination"),
    "azure-scheduled-event": condition("VMEventScheduled", reason="VMEventScheduled"),
    "aws-scale-in": taint(f"{NTH}/asg-lifecycle-termination", EVENT),
    "cluster-autoscaler": taint("ToBeDeletedByClusterAutoscaler", "1764450000"),
    "karpenter": taint("karpenter.sh/disrupted"),
    "drain": condition("DrainInProgress"),
    "nvsentinel-drain": label("dgxc.nvidia.com/nvsentinel-state", "draining"),
    "maintenance-now": condition("MaintenanceInProgress", reason="MaintenanceWindow"),
    "shutdown": condition("GracefulNodeShutdownInProgress", reason="NodeShutdown"),
    "eks-gpu-repair": condition("AcceleratedHardwareReady", "False", "NvidiaXID79Error"),
    "maintenance": condition("MaintenancePlanned", reason="MaintenanceWindow"),
    "aws-maintenance": taint(f"{NTH}/scheduled-maintenance", EVENT),
    "nvsentinel-quarantine": label("dgxc.nvidia.com/nvsentinel-state", "quarantined"),
    "aks-gpu-missing": condition("GPUMissing", reason="GPUMissing"),
    "aks-gpu-xid": condition("XIDErrors", reason="XIDErrors"),
    "aks-nvlink": condition("NVLinkStatusInactive", reason="NVLinkStatusInactive"),
    "cordon": {"spec": {"unschedulable": True} | taint("node.kubernetes.io/unschedulable")["spec"]},
    "aws-rebalance": taint(f"{NTH}/rebalance-recommendation", EVENT),
    "cluster-autoscaler-candidate": taint("DeletionCandidateOfClusterAutoscaler", "1764450000", "PreferNoSchedule"),
}
CALM = {
    "a new node": {},
    "a node of GPUs alone": taint("nvidia.com/gpu", "present"),
    "a node that reports that it is well": condition("VMEventScheduled", "False", "NoVMEventScheduled"),
    "a node of EKS that is well": condition("AcceleratedHardwareReady", "True", "NVIDIAAcceleratedHardwareIsReady"),
    "a drain of which nobody knows": condition("DrainInProgress", "Unknown"),
    "a node that was repaired": label("dgxc.nvidia.com/nvsentinel-state", "remediation-succeeded"),
    "an annotation of that name": {"metadata": {"annotations": {"karpenter.sh/disrupted": "true"}}},
}


def a_node(*signs: Tree) -> SchedulableNode:
    """A node with all of these signs."""
    metadata: Tree = {"name": "gpu-1", "labels": {}}
    spec: Tree = {"taints": []}
    conditions: list[Tree] = []
    for sign in signs:
        metadata["labels"] |= sign.get("metadata", {}).get("labels", {})
        metadata["annotations"] = sign.get("metadata", {}).get("annotations", {})
        conditions += sign.get("status", {}).get("conditions", [])
        spec["taints"] += sign.get("spec", {}).get("taints", [])
        spec["unschedulable"] = spec.get("unschedulable", False) or sign.get("spec", {}).get("unschedulable", False)
    return view({"metadata": metadata, "spec": spec, "status": {"conditions": conditions}}, SchedulableNode)


def signal(*signs: Tree, policy: Any = ()) -> str:
    """The id of the signal that counts; "" for none."""
    found = signal_of(a_node(*signs), a_policy(nodeSignals=policy).node_signals)
    return found.id if found else ""


def test_each_row_has_a_node_and_a_source() -> None:
    assert [row.id for row in BUILT_IN] == list(WRITTEN)
    assert all(row.source.startswith("https://") for row in BUILT_IN)


@pytest.mark.parametrize("row", WRITTEN)
def test_a_sign_is_found_as_its_program_writes_it(row: str) -> None:
    assert signal(WRITTEN[row]) == row


@pytest.mark.parametrize("sign", CALM.values(), ids=CALM)
def test_a_node_without_a_sign_stays(sign: Tree) -> None:
    assert signal(sign) == ""


def test_what_ends_within_minutes_counts_before_what_is_planned_and_that_before_what_may_be() -> None:
    drained = WRITTEN["cordon"], WRITTEN["cluster-autoscaler-candidate"], WRITTEN["karpenter"]
    assert signal(*drained) == "karpenter"
    assert signal(*drained[:2]) == "cordon"


def test_of_two_that_end_soon_the_shorter_notice_counts_and_a_promise_before_none() -> None:
    assert signal(WRITTEN["karpenter"], WRITTEN["aws-spot-interruption"]) == "aws-spot-interruption"
    assert signal(WRITTEN["aws-spot-interruption"], WRITTEN["gcp-termination"]) == "gcp-termination"
    assert signal(WRITTEN["karpenter"], WRITTEN["cluster-autoscaler"]) == "cluster-autoscaler", "the first of the table"


def test_the_notice_is_what_the_provider_promises() -> None:
    promised = {row.id: row.notice for row in BUILT_IN if row.notice is not None}
    assert promised == {"aws-spot-interruption": 120, "gcp-termination": 30, "eks-gpu-repair": 600}


def test_a_platform_team_adds_a_sign_of_its_own() -> None:
    own = {"id": "rack-work", "where": "Label", "key": "example.com/rack-work", "urgency": "Imminent"}
    assert signal(label("example.com/rack-work", "tonight"), policy=[own]) == "rack-work"
    assert signal(label("example.com/rack-work", "tonight"), policy=[own | {"value": "today"}]) == ""
    assert signal(WRITTEN["karpenter"], label("example.com/rack-work", ""), policy=[own]) == "rack-work", "before ours"
    soon = {"id": "rack-alarm", "where": "Condition", "key": "RackAlarm", "noticeSeconds": 60}
    assert signal(condition("RackAlarm"), WRITTEN["cordon"], policy=[soon]) == "rack-alarm"


def test_a_platform_team_changes_a_sign_and_switches_one_off() -> None:
    signs = WRITTEN["karpenter"], WRITTEN["cordon"]
    assert signal(*signs, policy=[{"id": "karpenter", "urgency": "Possible"}]) == "cordon"
    assert signal(*signs, policy=[{"id": "karpenter", "ignore": True}]) == "cordon"
    assert signal(WRITTEN["cordon"], policy=[{"id": "cordon", "ignore": True}]) == ""
    changed = [{"id": "karpenter", "noticeSeconds": 90}]
    row = next(each for each in a_policy(nodeSignals=changed).node_signals if each.id == "karpenter")
    assert (row.key, row.urgency, row.notice) == ("karpenter.sh/disrupted", "Imminent", 90)
