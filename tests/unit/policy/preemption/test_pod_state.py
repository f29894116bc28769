"""What preemption knows of a pod: what it asks for in all, what it waits for, and with whom it belongs together."""

from decimal import Decimal
from typing import Any

import pytest

from tests.builders import a_policy
from webhook.objects.view import view
from webhook.policy.preemption.pod_state import PodState, SchedulablePod, pod_state

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job", "controller": True}


def state(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any) -> PodState:
    about = {"name": "p", "namespace": "team", "uid": "pod", **metadata}
    tree = {"metadata": about, "spec": spec or {}, "status": status or {}}
    return pod_state(view(tree, SchedulablePod), a_policy())


def container(cpu: str = "0", **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("cpu", "spec"),
    [
        ("3", {"containers": [container("1"), container("2")]}),
        ("2", {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}),
        ("5", {"containers": [container("1")], "initContainers": [container("5")]}),
        ("3", {"containers": [container("2")], "initContainers": [container("1", **SIDECAR), container("1")]}),
        ("7", {"containers": [container("2")], "initContainers": [container("3", **SIDECAR), container("4")]}),
        ("6", {"containers": [container("2")], "initContainers": [container("4"), container("4", **SIDECAR)]}),
        ("2.5", {"containers": [container("2")], "overhead": {"cpu": "500m"}}),
        ("8", {"containers": [container("2")], "resources": {"requests": {"cpu": "8"}}}),
    ],
)
def test_a_pod_asks_for_the_most_that_it_needs_at_a_time(cpu: str, spec: dict[str, Any]) -> None:
    assert state(spec).requests["cpu"] == Decimal(cpu)


def sized(name: str = "c", given: str | None = None, used: str | None = None) -> dict[str, Any]:
    """A container's status: what the kubelet has allocated, and what is in effect."""
    allocated = {} if given is None else {"allocatedResources": {"cpu": given}}
    return {"name": name, **allocated, **({} if used is None else {"resources": {"requests": {"cpu": used}}})}


INFEASIBLE = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
DEFERRED = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}
TWO = {"containers": [container("2"), container("3", name="d")]}
LEVEL = {"containers": [container("2")], "resources": {"requests": {"cpu": "5"}}}


@pytest.mark.parametrize(
    ("cpu", "spec", "status"),
    [
        ("5", {"containers": [container("5")]}, {"containerStatuses": [sized(given="2", used="2")]}),
        ("5", {"containers": [container("2")]}, {"containerStatuses": [sized(given="5", used="5")]}),
        ("5", {"containers": [container("2")]}, {"containerStatuses": [sized(given="2", used="5")]}),
        ("5", {"containers": [container("2")]}, {"containerStatuses": [sized(used="5")]}),
        ("5", {"containers": [container("2")]}, {"containerStatuses": [sized(given="5")]}),
        ("5", {"containers": [container("5")]}, DEFERRED | {"containerStatuses": [sized(given="2")]}),
        ("2", {"containers": [container("5")]}, INFEASIBLE | {"containerStatuses": [sized(given="2")]}),
        # The totals are compared: one container grows by what the other gives back.
        ("5", TWO, {"containerStatuses": [sized(given="3"), sized("d", given="2")]}),
        ("7", {"containers": [container("2")], "initContainers": [container("1", name="s", **SIDECAR)]},
         {"initContainerStatuses": [sized("s", given="5")]}),
        # The kubelet tells it of the pod as a whole.
        ("6", TWO, {"allocatedResources": {"cpu": "6"}, "resources": {"requests": {"cpu": "5"}}}),
        ("5", TWO, {"resources": {"limits": {"cpu": "9"}}}),
        ("5", LEVEL, {}),
        ("8", LEVEL, {"allocatedResources": {"cpu": "8"}, "resources": {"requests": {"cpu": "5"}}}),
        ("4", LEVEL, INFEASIBLE | {"allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "4"}}}),
    ],
)  # fmt: skip
def test_a_pod_that_is_resized_takes_the_most_of_before_and_after(
    cpu: str, spec: dict[str, Any], status: dict[str, Any]
) -> None:
    assert state(spec, status=status).requests["cpu"] == Decimal(cpu)


def test_claims_are_those_that_were_made_for_it_or_that_it_names() -> None:
    tree = {
        "metadata": {"name": "p", "namespace": "team", "uid": "pod"},
        "spec": {
            "resourceClaims": [
                {"name": "own", "resourceClaimTemplateName": "t"},
                {"name": "later", "resourceClaimTemplateName": "t"},
                {"name": "unneeded", "resourceClaimTemplateName": "t"},
                {"name": "shared", "resourceClaimName": "kept"},
            ]
        },
        "status": {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "p-own"}, {"name": "unneeded"}]},
    }
    assert pod_state(view(tree, SchedulablePod), a_policy()).claims == ("team/p-own", "", "team/kept")


def test_the_gang_of_a_pod() -> None:
    assert state().gang == "pod"
    assert state(ownerReferences=[JOB]).gang == "team/job"
    assert state(ownerReferences=[{**JOB, "apiVersion": "apps/v1", "kind": "ReplicaSet"}]).gang == "pod"
    of_jobset = state(ownerReferences=[JOB], annotations={"gpu-tiers.dev/gang": "jobset"})
    assert of_jobset.gang == "team/jobset"
    grouped = state({"schedulingGroup": {"podGroupName": "g"}}, ownerReferences=[JOB])
    assert (grouped.gang, grouped.pod_group) == ("team/g", "team/g")


def test_a_pod_without_a_grace_of_its_own_has_kubernetes_default() -> None:
    assert state().grace == 30
    assert state({"terminationGracePeriodSeconds": 0}).grace == 0


def test_of_a_pod_on_a_node_no_spec_is_kept() -> None:
    assert state({"nodeName": "a"}).spec is None
    assert state().spec is not None
