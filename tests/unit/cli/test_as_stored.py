"""Of what an API server would store, a review shows what gpu-tiers wrote, and neither defaults nor other webhooks."""

from typing import Any

import pytest

from webhook.cli.as_stored import hook_of, our_changes
from webhook.policy.checkpoint.hook_kinds import file_handler, signal_handler

SENT: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1000m"}}}]},
}


def stored(**spec: Any) -> dict[str, Any]:
    """As the API server gives it back."""
    container = {
        "name": "main",
        "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
        "terminationMessagePath": "/dev/termination-log",
        "volumeMounts": [{"name": "kube-api-access-x", "mountPath": "/var/run"}],
        **spec.pop("container", {}),
    }
    return {
        "metadata": {
            "name": "a",
            "uid": "705ab4f5",
            "labels": {"app": "a", "injected": "yes", "gpu-tiers.dev/tier": "gpu-batch"},
            "annotations": {"gpu-tiers.dev/assigned-by": "label: it says so", "gpu-tiers.dev/dry-run-owner": "{}"},
        },
        "spec": {
            "containers": [container],
            "priorityClassName": "gpu-batch",
            "priority": 400,
            "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
            "volumes": [{"name": "kube-api-access-x"}],
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def test_only_what_gpu_tiers_writes_is_shown() -> None:
    assert our_changes(SENT, stored()) == {
        "metadata": {
            "name": "a",
            "labels": {"app": "a", "gpu-tiers.dev/tier": "gpu-batch"},
            "annotations": {"gpu-tiers.dev/assigned-by": "label: it says so"},
        },
        "spec": {**SENT["spec"], "priorityClassName": "gpu-batch", "priority": 400},
    }


def test_an_object_without_its_mark_is_as_it_was_sent() -> None:
    other = stored()
    other["metadata"] = {"name": "a"}
    assert our_changes(SENT, other) == SENT


def test_the_folder_of_a_hook_and_tolerations_of_a_tier_are_shown() -> None:
    folder = {"name": "gpu-tiers-checkpoint", "emptyDir": {}}
    toleration = {"key": "tier", "operator": "Exists"}
    made = our_changes(SENT, stored(volumes=[{"name": "kube-api-access-x"}, folder], tolerations=[toleration]))
    assert (made["spec"]["volumes"], made["spec"]["tolerations"]) == ([folder], [toleration])


def a_pod_as_stored(scheduler: str) -> dict[str, Any]:
    found = stored(schedulerName=scheduler)
    found["metadata"]["labels"] |= {"kai.scheduler/queue": "research", "kai.scheduler/preemptibility": "preemptible"}
    found["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] = "training"
    return found


def test_a_scheduler_and_its_queue_are_shown() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", **SENT}
    made = our_changes(pod, a_pod_as_stored("volcano"))
    assert made["spec"]["schedulerName"] == "volcano"
    assert made["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "training"
    assert made["metadata"]["labels"].keys() == {
        "app", "gpu-tiers.dev/tier", "kai.scheduler/queue", "kai.scheduler/preemptibility"
    }  # fmt: skip
    named = {**pod, "spec": {**pod["spec"], "schedulerName": "default-scheduler"}}
    assert our_changes(named, a_pod_as_stored("volcano"))["spec"]["schedulerName"] == "volcano"


def test_the_default_scheduler_is_not() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", **SENT}
    assert "schedulerName" not in our_changes(pod, a_pod_as_stored("default-scheduler"))["spec"]


@pytest.mark.parametrize(
    ("written", "queue", "shown"),
    [({}, "training", "training"), ({}, "default", None), ({"queue": "mine"}, "mine", "mine")],
    ids=["the tier's", "Volcano's default", "its author's"],
)
def test_a_volcano_job_shows_the_queue_of_its_tier(written: dict[str, str], queue: str, shown: str | None) -> None:
    """Nothing else of ours may stand on it. Volcano itself fills in `default`, and its scheduler."""
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "a"}, "spec": written}
    made = our_changes(job, {**job, "spec": {"queue": queue, "schedulerName": "volcano", "maxRetry": 3}})
    assert made["spec"] == ({"queue": shown} if shown else {})


def test_containers_are_known_by_name_where_another_webhook_puts_its_own_before_them() -> None:
    handler = {"exec": {"command": ["save"]}}
    there = stored(container={"lifecycle": {"preStop": handler}})
    sidecar = {"name": "proxy", "image": "proxy", "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}
    there["spec"]["containers"].insert(0, sidecar)
    made = our_changes(SENT, there)
    (container,) = made["spec"]["containers"]
    assert container == {**SENT["spec"]["containers"][0], "lifecycle": {"preStop": handler}}
    plan = hook_of(SENT, made)
    assert plan is not None
    assert (plan.kind, plan.containers) == ("exec", (0,))


def test_lists_of_other_shapes_in_a_kind_without_a_schema_are_left_as_they_are() -> None:
    sent = {"metadata": {"name": "a"}, "spec": {"env": ["A=1"], "containers": 3}}
    marked = {**sent, "metadata": stored()["metadata"]}
    assert our_changes(sent, marked)["spec"] == sent["spec"]


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (file_handler("/run/gpu-tiers", 120), "file"),
        (signal_handler("USR1", "/run/done", 120), "signal"),
        ({"exec": {"command": ["save"]}}, "exec"),
        ({"httpGet": {"port": 80, "path": "/"}}, "http"),
        ({"sleep": {"seconds": 5}}, "sleep"),
    ],
)
def test_a_hook_is_known_by_its_handler(handler: dict[str, Any], kind: str) -> None:
    made = our_changes(SENT, stored(terminationGracePeriodSeconds=130, container={"lifecycle": {"preStop": handler}}))
    plan = hook_of(SENT, made)
    assert plan is not None
    assert (plan.kind, plan.grace, plan.containers) == (kind, 130, (0,))


def test_a_longer_grace_alone_is_a_hook_too_and_neither_is_none() -> None:
    plan = hook_of(SENT, our_changes(SENT, stored(terminationGracePeriodSeconds=130)))
    assert plan is not None
    assert (plan.kind, plan.containers) == ("sigterm", ())
    assert hook_of(SENT, our_changes(SENT, stored())) is None
