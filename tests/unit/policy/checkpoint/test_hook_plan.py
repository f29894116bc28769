"""The hook of a pod, its containers, and the grace period that it needs."""

import pytest

from tests.builders import PodBuilder, a_job, a_pod, hook_decided
from tests.builders.words import told
from webhook.objects.refusal import Refused
from webhook.policy.checkpoint.hook_kinds import file_handler
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.workloads.kind_table import WorkloadType

KIND = "gpu-tiers.dev/checkpoint"
SECONDS = "gpu-tiers.dev/checkpoint-timeout"
KINDS = "write one of file, listen, http, exec, signal, sigterm, sleep, none"
TRAINING, BATCH = WorkloadType.TRAINING, WorkloadType.BATCH
POD = a_pod().asking()
FILE = HookPlan("file", 130, (0,), file_handler("/run/gpu-tiers", 120), "/run/gpu-tiers")


def plan(pod: PodBuilder, workload_type: WorkloadType | None = TRAINING, **checkpoint: object) -> HookPlan | None:
    return hook_decided(pod, workload_type, **checkpoint).plan


def test_a_training_pod_gets_the_file_hook_and_the_grace_it_needs() -> None:
    assert plan(POD) == FILE


@pytest.mark.parametrize("workload_type", [WorkloadType.SERVING, BATCH, WorkloadType.INTERACTIVE, None])
def test_no_other_pod_gets_one(workload_type: WorkloadType | None) -> None:
    assert plan(POD, workload_type) is None


GRACE = [(None, 130), (0, 130), (30, 130), (130, 130), (3600, 3600)]


@pytest.mark.parametrize(("there", "grace"), GRACE)
def test_the_grace_is_never_less_than_what_is_there(there: int | None, grace: int) -> None:
    pod = POD if there is None else POD.having("spec.terminationGracePeriodSeconds", there)
    found = plan(pod)
    assert found
    assert found.grace == grace


def test_what_we_add_is_capped_and_the_hook_gives_up_in_time() -> None:
    """Nobody said how long a save takes: the usual 120 seconds give way to the cap."""
    hook = {"training": {"kind": "file", "seconds": None}, "marginSeconds": 20, "maxGracePeriodSeconds": 100}
    found = plan(POD, **hook)
    assert found
    assert (found.grace, found.handler) == (100, file_handler("/run/gpu-tiers", 80))


BATCH_GOES_SOON = {"training": {"kind": "file", "seconds": 300}, "maxGracePeriodSecondsByTier": {"gpu-batch": 60}}


def test_the_pods_of_a_tier_get_no_more_than_the_tier_leaves() -> None:
    """A training run that was demoted: whoever needs its GPUs waits a minute, and the hook gives up in time."""
    found = hook_decided(POD, TRAINING, tier="gpu-batch", **BATCH_GOES_SOON).plan
    assert found == HookPlan("file", 60, (0,), file_handler("/run/gpu-tiers", 50), "/run/gpu-tiers")
    elsewhere = hook_decided(POD, TRAINING, tier="gpu-training", **BATCH_GOES_SOON).plan
    assert elsewhere
    assert elsewhere.grace == 310


def test_an_annotation_gets_no_more_than_its_tier_leaves_and_a_grace_of_the_user_s_own_stays() -> None:
    annotated = POD.annotated({SECONDS: "200"}).having("spec.terminationGracePeriodSeconds", 90)
    found = hook_decided(annotated, TRAINING, tier="gpu-batch", **BATCH_GOES_SOON).plan
    assert found == HookPlan("file", 90, (0,), file_handler("/run/gpu-tiers", 50), "/run/gpu-tiers")


def test_sigterm_is_grace_alone() -> None:
    assert plan(POD, training={"kind": "sigterm", "seconds": 60}) == HookPlan("sigterm", 70)


def test_only_containers_that_hold_gpus_get_the_hook() -> None:
    found = plan(a_pod().running("proxy", name="proxy").asking().asking(name="second"))
    assert found
    assert found.containers == (1, 2)


def test_a_user_s_own_pre_stop_is_never_replaced() -> None:
    own = {"preStop": {"exec": {"command": ["save"]}}}
    assert plan(a_pod().asking(lifecycle=own)) is None
    found = plan(a_pod().asking(lifecycle=own).asking(name="second"))
    assert found
    assert found.containers == (1,)


def test_our_own_pre_stop_is_known_again() -> None:
    """In the second pass the pod bears the hook: the plan is the same, and the patch is empty."""
    again = a_pod().asking(lifecycle={"preStop": FILE.handler}).having("spec.terminationGracePeriodSeconds", 130)
    assert plan(again) == FILE


def test_windows_has_no_shell() -> None:
    assert plan(POD.having("spec.os", {"name": "windows"})) is None
    assert plan(POD.having("spec.nodeSelector", {"kubernetes.io/os": "windows"})) is None
    assert plan(POD.having("spec.os", {"name": "linux"})) == FILE


def test_an_annotation_asks_for_a_hook_where_the_type_has_none() -> None:
    assert plan(POD.annotated({KIND: "file"}), BATCH) == FILE
    assert plan(POD.annotated({KIND: "none"})) is None
    assert plan(POD.annotated({KIND: "sigterm", SECONDS: "300"})) == HookPlan("sigterm", 310)


def test_an_owner_s_annotation_holds_for_its_pods_and_the_pod_s_own_before_it() -> None:
    owner = a_job().annotated({KIND: "sigterm", SECONDS: "60"})
    assert hook_decided(POD, BATCH, owner).plan == HookPlan("sigterm", 70)
    own = POD.annotated({SECONDS: "90"})
    assert hook_decided(own, BATCH, owner).plan == HookPlan("sigterm", 100)


REFUSED = [
    (
        {KIND: "sigusr1"},
        f'metadata.annotations[{KIND}]: "sigusr1" is not a kind of hook; {KINDS}',
    ),
    ({KIND: ""}, f'metadata.annotations[{KIND}]: "" is not a kind of hook; {KINDS}'),
    ({SECONDS: "5m"}, f'metadata.annotations[{SECONDS}]: "5m" is not a time to save; write seconds, from "1" to "590"'),
    ({SECONDS: "0"}, f'metadata.annotations[{SECONDS}]: "0" is not a time to save; write seconds, from "1" to "590"'),
    (
        {SECONDS: "591"},
        f'metadata.annotations[{SECONDS}]: "591" is not a time to save; write seconds, from "1" to "590"',
    ),
    ({SECONDS: "-1"}, f'metadata.annotations[{SECONDS}]: "-1" is not a time to save; write seconds, from "1" to "590"'),
]


@pytest.mark.parametrize(("annotations", "sentence"), REFUSED)
def test_an_annotation_that_means_nothing_is_refused(annotations: dict[str, str], sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        plan(POD.annotated(annotations))
    assert told(refused.value) == sentence
    with pytest.raises(Refused) as refused:
        hook_decided(POD, TRAINING, a_job(name="night").annotated(annotations))
    assert told(refused.value) == f"Job/night.{sentence}"
