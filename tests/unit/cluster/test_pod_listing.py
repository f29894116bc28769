"""Pods as a list reduces them: what reports of a whole cluster are made of."""

from decimal import Decimal
from typing import Any

from tests.builders import PodBuilder, a_job, a_pod, a_policy, a_pytorchjob
from webhook.cluster.listed import PodSummary, summary_of
from webhook.cluster.pod_informer import SeenPod
from webhook.objects.view import view
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Devices

HOOK = {"preStop": {"exec": {"command": ["save"]}}}


def reduced(pod: PodBuilder, *devices: Devices, **status: Any) -> PodSummary:
    """Return the reduced form of a pod as the API server lists it."""
    return summary_of(view({**pod.sent(), "status": {"phase": "Running", **status}}, SeenPod), devices, a_policy())


def test_a_pod_of_a_tier() -> None:
    pod = a_pod().asking(2).of_tier("gpu-batch").of_class("gpu-batch").having("spec.priority", 400)
    found = reduced(pod.annotated({"gpu-tiers.dev/assigned-by": "label: gpu-tiers.dev/tier"}))
    assert (found.namespace, found.name) == ("team-alpha", "pod-1")
    assert (found.tier_label, found.class_name, found.tier) == ("gpu-batch", "gpu-batch", "gpu-batch")
    assert found.priority == 400
    assert (found.gpus, found.assigned_by, found.made_by) == (2, "label: gpu-tiers.dev/tier", "Pod/pod-1 in team-alpha")


def test_what_the_scheduler_sets_aside_for_it() -> None:
    main = {"requests": {"cpu": "1500m", "memory": "2Gi"}}
    pod = a_pod().running("web", resources=main).having("spec.overhead", {"cpu": "250m"})
    fetch = {"name": "fetch", "image": "x", "resources": {"requests": {"cpu": "4"}}}
    assert reduced(pod).cpu == Decimal("1.75")
    assert reduced(pod).memory == 2 * 1024**3
    assert reduced(pod.having("spec.initContainers", [fetch])).cpu == Decimal("4.25")


def test_of_a_pod_without_gpus_nothing_more_is_stored() -> None:
    found = reduced(a_pod().running("torchrun", lifecycle=HOOK).labelled({"app": "web"}))
    assert (found.gpus, found.workload_type, found.hook, found.labels) == (0, None, False, {})


def test_training_by_its_owner_by_its_labels_and_by_its_command() -> None:
    owned = a_pod().asking().owned_by(a_pytorchjob())
    labelled = a_pod().asking().labelled({"training.kubeflow.org/job-name": "tune"})
    running = a_pod().asking(command=["torchrun", "train.py"]).owned_by(a_job())
    for pod in (owned, labelled, running):
        assert reduced(pod).workload_type is WorkloadType.TRAINING
    assert reduced(running).made_by == "Job/work in team-alpha"


def test_a_hook_is_on_every_container_with_gpus() -> None:
    hooked = a_pod().asking(lifecycle=HOOK)
    assert reduced(hooked).hook
    assert not reduced(hooked.asking(name="second")).hook
    assert reduced(hooked.running("sidecar", name="logs")).hook, "a container without GPUs needs none"


def test_gpus_by_claims() -> None:
    pod = a_pod().running("train").having("spec.resourceClaims", [{"name": "gpu", "resourceClaimName": "shared"}])
    assert reduced(pod, Devices("gpu.nvidia.com", 4, "gpu")).gpus == 4


def test_a_pod_that_waits_behind_a_gate() -> None:
    gated = a_pod().asking().having("spec.schedulingGates", [{"name": "kueue.x-k8s.io/admission"}])
    assert reduced(gated, phase="Pending").gated
    assert not reduced(a_pod().asking()).gated
