"""Of what an API server would store, a review shows what gpu-tiers wrote, and neither defaults nor other webhooks."""

from typing import Any

import pytest

from webhook.cli.as_stored import hook_of, our_changes
from webhook.policy.checkpoint.hook_kinds import file_handler, signal_handler

SENT = {
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
