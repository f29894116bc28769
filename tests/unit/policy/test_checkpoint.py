"""Which hook a pod gets, and what the hook itself does when a shell runs it."""

import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.builders import PodBuilder, a_job, a_pod, a_policy
from webhook.objects.refusal import Refused
from webhook.policy.checkpoint.hook_kinds import file_handler
from webhook.policy.checkpoint.hook_plan import HookPlan, plan_hook
from webhook.policy.workloads.workload_types import WorkloadType

KIND = "gpu-tiers.dev/checkpoint"
SECONDS = "gpu-tiers.dev/checkpoint-timeout"
KINDS = "write one of file, http, exec, signal, sigterm, sleep, none"
TRAINING, BATCH = WorkloadType.TRAINING, WorkloadType.BATCH
POD = a_pod().asking()
FILE = HookPlan("file", 130, (0,), file_handler("/run/gpu-tiers", 120), "/run/gpu-tiers")


def plan(pod: PodBuilder, kind: WorkloadType | None = TRAINING, **checkpoint: object) -> HookPlan | None:
    policy = a_policy(checkpoint=checkpoint) if checkpoint else a_policy()
    return plan_hook(pod.view(), kind, (), policy).plan


def test_a_training_pod_gets_the_file_hook_and_the_grace_it_needs() -> None:
    assert plan(POD) == FILE


@pytest.mark.parametrize("kind", [WorkloadType.SERVING, BATCH, WorkloadType.INTERACTIVE, None])
def test_no_other_pod_gets_one(kind: WorkloadType | None) -> None:
    assert plan(POD, kind) is None


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
    owner = a_job().annotated({KIND: "sigterm", SECONDS: "60"}).view()
    assert plan_hook(POD.view(), BATCH, (owner,), a_policy()).plan == HookPlan("sigterm", 70)
    own = POD.annotated({SECONDS: "90"}).view()
    assert plan_hook(own, BATCH, (owner,), a_policy()).plan == HookPlan("sigterm", 100)


REFUSED = [
    (
        {KIND: "sigusr1"},
        f'metadata.annotations[{KIND}]: "sigusr1" is no kind of hook; {KINDS}',
    ),
    ({KIND: ""}, f'metadata.annotations[{KIND}]: "" is no kind of hook; {KINDS}'),
    ({SECONDS: "5m"}, f'metadata.annotations[{SECONDS}]: "5m" is no time to save; write seconds, from 1 to 590'),
    ({SECONDS: "0"}, f'metadata.annotations[{SECONDS}]: "0" is no time to save; write seconds, from 1 to 590'),
    ({SECONDS: "591"}, f'metadata.annotations[{SECONDS}]: "591" is no time to save; write seconds, from 1 to 590'),
    ({SECONDS: "-1"}, f'metadata.annotations[{SECONDS}]: "-1" is no time to save; write seconds, from 1 to 590'),
]


@pytest.mark.parametrize(("annotations", "sentence"), REFUSED)
def test_an_annotation_that_means_nothing_is_refused(annotations: dict[str, str], sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        plan(POD.annotated(annotations))
    assert refused.value.sentence == sentence
    with pytest.raises(Refused) as refused:
        plan_hook(POD.view(), TRAINING, (a_job(name="night").annotated(annotations).view(),), a_policy())
    assert refused.value.sentence == f"Job/night.{sentence}"


def run(folder: Path, seconds: int = 2) -> subprocess.CompletedProcess[str]:
    command = file_handler(str(folder), seconds)["exec"]["command"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_the_hook_returns_at_once_where_nobody_listens(tmp_path: Path) -> None:
    start = time.monotonic()
    assert run(tmp_path, 60).returncode == 0
    assert time.monotonic() - start < 5
    assert list(tmp_path.iterdir()) == []


def test_the_hook_returns_at_once_where_there_is_no_folder(tmp_path: Path) -> None:
    assert run(tmp_path / "absent", 60).returncode == 0


def test_the_hook_asks_and_waits_until_the_program_has_saved(tmp_path: Path) -> None:
    (tmp_path / "listening").touch()
    saved = tmp_path / "checkpoint"

    def train() -> None:
        while not (tmp_path / "request").exists():
            time.sleep(0.05)
        time.sleep(1.2)
        saved.write_text("step 7")
        (tmp_path / "done").touch()

    program = threading.Thread(target=train, daemon=True)
    program.start()
    done = run(tmp_path, 20)
    program.join(10)
    assert (done.returncode, done.stderr, saved.read_text()) == (0, "", "step 7")


def test_the_hook_fails_when_time_is_out(tmp_path: Path) -> None:
    """The kubelet reports it: event FailedPreStopHook."""
    (tmp_path / "listening").touch()
    done = run(tmp_path, 1)
    assert (done.returncode, done.stderr) == (1, "no checkpoint within 1 s\n")
    assert (tmp_path / "request").exists()


def test_the_answer_to_an_earlier_request_is_no_answer(tmp_path: Path) -> None:
    """A container restarted in place finds the folder of its former life."""
    for name in ("listening", "done"):
        (tmp_path / name).touch()
    assert run(tmp_path, 1).returncode == 1


def test_an_answered_request_does_not_meet_the_next_life_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "listening").touch()
    answer = threading.Timer(0.5, (tmp_path / "done").touch)
    answer.start()
    assert run(tmp_path, 20).returncode == 0
    assert not (tmp_path / "request").exists()


def test_the_hook_fails_at_once_where_it_cannot_ask(tmp_path: Path) -> None:
    (tmp_path / "listening").touch()
    (tmp_path / "request").symlink_to(tmp_path / "absent" / "request")
    start = time.monotonic()
    assert run(tmp_path, 20).returncode == 1
    assert time.monotonic() - start < 5
