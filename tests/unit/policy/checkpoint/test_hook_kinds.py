"""The text that each kind of hook writes on a pod."""

import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.builders import PodBuilder, a_pod, hook_decided
from webhook.policy.checkpoint.hook_kinds import ROWS, file_handler, signal_handler
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.checkpoint.listen import listener
from webhook.policy.values.tier_policy import HookKind, WorkloadType

KIND = "gpu-tiers.dev/checkpoint"
TRAINING, SERVING = WorkloadType.TRAINING, WorkloadType.SERVING
FOLDER = "/run/gpu-tiers"
PORTS = [{"name": "admin", "containerPort": 9000}]
POD = a_pod().asking(ports=PORTS)
HTTP = {"httpGet": {"path": "/checkpoint", "port": 9000, "scheme": "HTTP"}}
EXEC = {"exec": {"command": ["save", "to disk"]}}
SIGNAL = signal_handler("USR1", f"{FOLDER}/done", 120)

PLANS: dict[str, tuple[dict[str, str], HookPlan | None]] = {
    "file": ({KIND: "file"}, HookPlan("file", 130, (0,), file_handler(FOLDER, 120), FOLDER)),
    "listen": (
        {KIND: "listen"},
        HookPlan(
            "listen",
            130,
            (0,),
            file_handler(FOLDER, 120),
            FOLDER,
            ((0, "PYTHONPATH", "/opt/gpu-tiers/python"),),
            (listener(""),),
        ),
    ),
    "http": ({KIND: "http", f"{KIND}-port": "9000"}, HookPlan("http", 130, (0,), HTTP)),
    "exec": ({KIND: "exec", f"{KIND}-command": '["save", "to disk"]'}, HookPlan("exec", 130, (0,), EXEC)),
    "signal": ({KIND: "signal"}, HookPlan("signal", 130, (0,), SIGNAL, FOLDER)),
    "sigterm": ({KIND: "sigterm"}, HookPlan("sigterm", 130)),
    "sleep": ({KIND: "sleep"}, HookPlan("sleep", 30, (0,), {"sleep": {"seconds": 15}})),
    "none": ({KIND: "none"}, None),
}


def plan(
    pod: PodBuilder, workload_type: WorkloadType | None = None, tier: str | None = None, **checkpoint: Any
) -> HookPlan | None:
    return hook_decided(pod, workload_type, tier=tier, **checkpoint).plan


def test_every_kind_is_tried_here() -> None:
    assert list(PLANS) == list(ROWS) == list(get_args(HookKind))


@pytest.mark.parametrize("kind", PLANS)
def test_what_each_kind_writes(kind: str) -> None:
    annotations, expected = PLANS[kind]
    assert plan(POD.annotated(annotations)) == expected


@pytest.mark.parametrize("kind", PLANS)
def test_the_second_pass_plans_the_same(kind: str) -> None:
    annotations, expected = PLANS[kind]
    handler = expected.handler if expected else None
    lifecycle = {"preStop": handler} if handler else {}
    grace = expected.grace if expected else 30
    again = a_pod().asking(ports=PORTS, lifecycle=lifecycle).having("spec.terminationGracePeriodSeconds", grace)
    assert plan(again.annotated(annotations)) == expected


def test_a_port_s_name_becomes_its_number_wherever_it_is_declared() -> None:
    """The containers of a pod share one address, and a name is looked up in the hook's own container alone."""
    proxy = {"name": "proxy", "image": "envoy", "ports": [{"name": "admin", "containerPort": 7000}]}
    pod = a_pod().having("spec.containers", [proxy]).asking()
    found = plan(pod.annotated({KIND: "http", f"{KIND}-port": "admin"}))
    assert found
    assert found.handler == {"httpGet": {"path": "/checkpoint", "port": 7000, "scheme": "HTTP"}}
    both = a_pod().having("spec.containers", [proxy]).asking(ports=PORTS)
    found = plan(both.annotated({KIND: "http", f"{KIND}-port": "admin"}))
    assert found
    assert found.handler == HTTP, "the container with the GPU comes first"


def test_every_container_with_gpus_waits_for_the_save() -> None:
    found = plan(POD.asking(name="second").annotated(PLANS["http"][0]))
    assert found
    assert found.containers == (0, 1)


def test_a_tier_s_hook_comes_before_the_type_s() -> None:
    checkpoint = {"tiers": {"gpu-serving": {"kind": "sleep", "seconds": 40}, "gpu-batch": {"kind": "none"}}}
    assert plan(POD, SERVING, "gpu-serving", **checkpoint) == HookPlan("sleep", 50, (0,), {"sleep": {"seconds": 40}})
    assert plan(POD, TRAINING, "gpu-serving", **checkpoint) == HookPlan("sleep", 50, (0,), {"sleep": {"seconds": 40}})
    assert plan(POD, TRAINING, "gpu-batch", **checkpoint) is None
    assert plan(POD, TRAINING, "gpu-training", **checkpoint) == PLANS["file"][1]
    assert plan(POD, SERVING, None, **checkpoint) is None


DONE = f"{KIND}-done-file"

NAMED: dict[str, tuple[dict[str, str], list[dict[str, object]], str | None]] = {
    "no folder named": ({KIND: "file"}, [], FOLDER),
    "a folder of nowhere": ({KIND: "file", f"{KIND}-path": "/work/hook"}, [], "/work/hook"),
    "a folder in a volume": ({KIND: "file", f"{KIND}-path": "/data/hook"}, [{"mountPath": "/data"}], None),
    "a volume that can't be written": (
        {KIND: "file", f"{KIND}-path": "/data/hook"},
        [{"mountPath": "/data", "readOnly": True}],
        "/data/hook",
    ),
    "a volume of a like name": ({KIND: "file", f"{KIND}-path": "/database"}, [{"mountPath": "/data"}], "/database"),
    "no done file named": ({KIND: "signal"}, [], FOLDER),
    "a done file in the folder": ({KIND: "signal", DONE: f"{FOLDER}/saved"}, [], FOLDER),
    "a done file elsewhere": ({KIND: "signal", DONE: "/data/done"}, [], None),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_folder_is_mounted_where_none_is_named(name: str) -> None:
    annotations, mounts, folder = NAMED[name]
    found = plan(a_pod().asking(volumeMounts=[{"name": "data", **mount} for mount in mounts]).annotated(annotations))
    assert found
    assert found.folder == folder


def test_the_exec_hook_is_the_command_as_it_was_written(tmp_path: Path) -> None:
    saved = tmp_path / "check point"
    found = plan(POD.annotated({KIND: "exec", f"{KIND}-command": f"touch '{saved}'"}))
    assert found
    assert found.handler
    subprocess.run(found.handler["exec"]["command"], check=True)
    assert saved.exists()
