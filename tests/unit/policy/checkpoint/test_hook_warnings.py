"""The warnings about a pod's end: exact sentences, and silence where nobody can be sure."""

import string
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import PodBuilder, WorkloadBuilder, a_job, a_pod, a_policy, a_workload, hook_decided
from tests.builders.words import sentence, words
from webhook.objects.refusal import AdmissionWarning, Refused
from webhook.policy.checkpoint.hook_warnings import hook_warnings
from webhook.policy.values.tier_policy import WorkloadType
from webhook.policy.workloads.workload import Devices
from webhook.sentences.sentence import LONGEST, WARNINGS

KIND = "gpu-tiers.dev/checkpoint"
TRAINING, SERVING = WorkloadType.TRAINING, WorkloadType.SERVING
OWN: dict[str, Any] = {"preStop": {"exec": {"command": ["save"]}}}
EMPTY = [{"name": "scratch", "emptyDir": {}}]
MOUNT = [{"name": "scratch", "mountPath": "/scratch"}]


def warned(
    pod: PodBuilder,
    *owners: WorkloadBuilder,
    workload_type: WorkloadType | None = TRAINING,
    bare: bool = False,
    devices: Sequence[Devices] = (),
    tier: str | None = None,
    **checkpoint: Any,
) -> list[str]:
    """The warnings on a pod that is of a training workload unless it is told otherwise."""
    decision = hook_decided(pod, workload_type, *owners, tier=tier, devices=devices, **checkpoint)
    policy = a_policy(checkpoint=checkpoint) if checkpoint else a_policy()
    return [*words(hook_warnings(pod.view(), decision, policy.checkpoint, bare=bare))]


def a_trainer(**container: object) -> PodBuilder:
    return a_pod().asking(**container)


def scratched(**container: Any) -> PodBuilder:
    """A trainer with an emptyDir."""
    return a_trainer(**{"volumeMounts": MOUNT, **container}).having("spec.volumes", EMPTY)


def noted(pod: PodBuilder, kind: str, **more: str) -> PodBuilder:
    fields = {f"{KIND}-{name.replace('_', '-')}": value for name, value in more.items()}
    return pod.annotated({KIND: kind, **fields})


CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
GPUS = Devices("gpu.nvidia.com", 1, entry="gpu", request="gpu")


def by_claim(pod: PodBuilder) -> PodBuilder:
    """The same pod, whose containers get their GPUs by a claim instead."""
    tree = pod.json()
    tree["spec"].setdefault("resourceClaims", CLAIMS)
    for container in tree["spec"].get("containers", []):
        if container.pop("resources", None):
            container["resources"] = {"claims": [{"name": "gpu"}]}
    return PodBuilder(tree)


SQL_PROXY = {"name": "cloud-sql-proxy", "image": "registry.example/cloud-sql-proxy:2"}
OVERRIDES = "[hook-overrides-policy] the annotation's hook ({}) replaces the policy's hook (file)"
SAID: dict[str, tuple[PodBuilder, dict[str, Any], list[str]]] = {
    "its own preStop and the default grace": (
        a_trainer(lifecycle=OWN),
        {},
        ["[pre-stop-grace] container main has its own preStop, and 30 s of grace, but 130 s are needed"],
    ),
    "its own preStop that sleeps the grace away": (
        a_trainer(lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "sleep 30"]}}}),
        {"workload_type": SERVING},
        ["[pre-stop-grace] container main has its own preStop, and 30 s of grace, but 31 s are needed"],
    ),
    "a shell in front of the program": (
        a_trainer(command=["sh", "-c", "python train.py"]),
        {},
        ["[shell-pid-1] container main: a shell as first process does not pass SIGTERM on; exec the program"],
    ),
    "a grace above the cap": (
        a_trainer().having("spec.terminationGracePeriodSeconds", 3600),
        {"workload_type": None},
        [
            (
                "[grace-above-cap] terminationGracePeriodSeconds 3600 is above the policy's 600; "
                "another pod may wait that long"
            )
        ],
    ),
    "nobody who makes it again": (
        a_trainer().having("spec.restartPolicy", "Never"),
        {"bare": True},
        [
            (
                "[no-controller] restartPolicy Never and no controller: nothing creates this pod again after a "
                "preemption; use a Job"
            )
        ],
    ),
    "a checkpoint that dies with the pod, by a variable": (
        scratched(env=[{"name": "CHECKPOINT_DIR", "value": "/scratch/run"}]),
        {},
        ["[checkpoint-on-emptydir] container main: /scratch/run lies on the emptyDir scratch, which dies with the pod"],
    ),
    "a checkpoint that dies with the pod, by an argument": (
        scratched(command=["train", "--save-ckpt-dir", "/scratch"]),
        {},
        ["[checkpoint-on-emptydir] container main: /scratch lies on the emptyDir scratch, which dies with the pod"],
    ),
    "a hook beside a preStop": (
        noted(a_trainer(lifecycle=OWN).having("spec.terminationGracePeriodSeconds", 300), "file"),
        {},
        ["[hook-ignored] no file hook: each container with GPUs has a preStop of its own"],
    ),
    "a hook on Windows": (
        noted(a_trainer().having("spec.os", {"name": "windows"}), "http", port="80"),
        {},
        ["[hook-ignored] no http hook: it is a Windows pod"],
    ),
    "a hook on GPUs of a claim that no container names": (
        a_pod().running("train").having("spec.resourceClaims", CLAIMS),
        {"devices": [GPUS]},
        ["[hook-ignored] no file hook: no app container names the pod's GPU claim under resources.claims"],
    ),
    "a hook on a pod without GPUs": (
        noted(a_pod().running("train"), "file"),
        {"workload_type": None},
        ["[hook-ignored] no file hook: none of its app containers asks for GPUs"],
    ),
    "a signal to nobody": (
        noted(a_trainer().having("spec.shareProcessNamespace", True), "signal"),
        {"workload_type": None},
        ["[hook-ignored] no signal hook: in a shared PID namespace process 1 is not the container's own"],
    ),
    "a policy's port that the pod lacks": (
        a_trainer(),
        {"training": {"kind": "http", "port": "admin"}},
        ['[hook-ignored] no http hook: no container has a port named "admin"'],
    ),
    "a time and no hook": (
        a_trainer().annotated({f"{KIND}-timeout": "60"}),
        {"workload_type": None},
        ["[hook-ignored] no hook to time: checkpoint-timeout alone sets no hook; add gpu-tiers.dev/checkpoint"],
    ),
    "more time than its tier leaves": (
        a_trainer().annotated({f"{KIND}-timeout": "200"}),
        {"tier": "gpu-batch", "training": {"kind": "file"}, "maxGracePeriodSecondsByTier": {"gpu-batch": 60}},
        ["[hook-ignored] no file hook of 200 s: its tier leaves 50 s to save"],
    ),
    "a grace above what its tier leaves": (
        a_trainer().having("spec.terminationGracePeriodSeconds", 90),
        {"tier": "gpu-batch", "maxGracePeriodSecondsByTier": {"gpu-batch": 60}},
        ["[grace-above-cap] terminationGracePeriodSeconds 90 is above the policy's 60; another pod may wait that long"],
    ),
    "another hook than the policy's": (noted(a_trainer(), "none"), {}, [OVERRIDES.format("none")]),
    "a port that nobody declares": (
        noted(a_trainer(ports=[{"containerPort": 80}]), "http", port="8080"),
        {"workload_type": None},
        ["[hook-port] no container declares port 8080, which the http hook calls; make sure something listens there"],
    ),
    "an image without a shell": (
        a_trainer(image="gcr.io/distroless/python3"),
        {},
        [
            (
                "[no-shell] image distroless/python3 seems to have no shell, which a file hook needs; "
                "use http, sleep or sigterm"
            )
        ],
    ),
    "a proxy that is gone before the save is done": (
        a_trainer().having("spec.containers", [SQL_PROXY]),
        {},
        [
            (
                "[sidecar-ends-first] while main saves, container cloud-sql-proxy has already ended: "
                "make it a native sidecar"
            )
        ],
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str) -> None:
    pod, facts, sentences = SAID[name]
    assert warned(pod, **facts) == sentences


@pytest.mark.parametrize("name", SAID)
def test_the_same_is_said_where_the_gpus_come_by_a_claim(name: str) -> None:
    pod, facts, sentences = SAID[name]
    devices = [GPUS] if pod.json()["spec"]["containers"][0].get("resources") else ()
    assert warned(by_claim(pod), **{"devices": devices, **facts}) == sentences


UPLOADER = {"name": "copy", "image": "busybox", "volumeMounts": MOUNT}
SILENT: dict[str, tuple[PodBuilder, dict[str, Any]]] = {
    "an ordinary trainer": (a_trainer(command=["python", "train.py"]), {"bare": True}),
    "its own preStop with grace enough": (
        a_trainer(lifecycle=OWN).having("spec.terminationGracePeriodSeconds", 130),
        {},
    ),
    "its own preStop where no hook is asked for": (a_trainer(lifecycle=OWN), {"workload_type": SERVING}),
    "the webhook's own hook in the second pass": (
        a_trainer(lifecycle={"preStop": {"sleep": {"seconds": 40}}}).having("spec.terminationGracePeriodSeconds", 50),
        {"training": {"kind": "sleep", "seconds": 40}},
    ),
    "a shell where no hook is asked for": (a_trainer(command=["sh", "-c", "serve"]), {"workload_type": SERVING}),
    "a shell that is not the first process": (
        a_trainer(command=["sh", "-c", "train"]).having("spec.shareProcessNamespace", True),
        {},
    ),
    "the longest grace that a hook may have": (a_trainer().having("spec.terminationGracePeriodSeconds", 600), {}),
    "a long grace without GPUs": (a_pod().running("x").having("spec.terminationGracePeriodSeconds", 3600), {}),
    "a pod that a controller makes again": (a_trainer().having("spec.restartPolicy", "Never"), {}),
    "a shell for a person": (a_trainer().having("spec.restartPolicy", "Never"), {"bare": True, "workload_type": None}),
    "a checkpoint on another volume": (
        scratched(
            env=[{"name": "CHECKPOINT_DIR", "value": "/scratch/run"}],
            volumeMounts=[*MOUNT, {"name": "claim", "mountPath": "/scratch/run"}],
        ),
        {},
    ),
    "a checkpoint that another container carries away": (
        scratched(env=[{"name": "CHECKPOINT_DIR", "value": "/scratch"}]).having("spec.containers", [UPLOADER]),
        {},
    ),
    "a checkpoint that an init container fetched": (
        scratched(env=[{"name": "CHECKPOINT_DIR", "value": "/scratch"}]).with_init(0, volumeMounts=MOUNT),
        {},
    ),
    "a path under another name": (scratched(args=["--output_dir=/scratch", "--checkpoint-format=/scratch"]), {}),
    "a model that is served": (scratched(args=["--checkpoint-path=/scratch"]), {"workload_type": SERVING}),
    "a network card in a gang whose owner asks for a hook": (
        by_claim(a_trainer()),
        {"workload_type": None, "owner": "sigterm", "devices": [Devices("nic.example.com", 1, "gpu", "nic")]},
    ),
    "a launcher in a gang whose owner asks for a hook": (
        a_pod().running("mpirun"),
        {"workload_type": None, "owner": "sigterm"},
    ),
    "a preStop beside the policy's hook, with grace enough": (
        a_trainer(lifecycle=OWN).having("spec.terminationGracePeriodSeconds", 300),
        {},
    ),
    "Windows under the policy's hook": (a_trainer().having("spec.os", {"name": "windows"}), {}),
    "the policy's kind, asked for once more": (noted(a_trainer(), "file"), {}),
    "a port of another container": (
        noted(
            a_trainer().having("spec.containers", [{**SQL_PROXY, "ports": [{"containerPort": 80}]}]), "http", port="80"
        ),
        {"workload_type": SERVING, "training": None, "serving": {"kind": "none"}, "only": "hook-port"},
    ),
    "an image whose name only sounds static": (a_trainer(image="registry.example/statics-trainer:1"), {}),
    "an image without a shell, and a hook that needs none": (
        noted(a_trainer(image="gcr.io/distroless/static"), "sigterm"),
        {"workload_type": None},
    ),
    "a proxy that waits by itself": (a_trainer().having("spec.containers", [{**SQL_PROXY, "lifecycle": OWN}]), {}),
    "a proxy that is a native sidecar": (a_trainer().with_sidecar(0, name="cloud-sql-proxy"), {}),
    "a second container that the save needs nothing of": (a_trainer().running("tensorboard", name="board"), {}),
}


@pytest.mark.parametrize("name", SILENT)
@pytest.mark.parametrize("asked_by", ["name", "claim"])
def test_what_is_not_said(name: str, asked_by: str) -> None:
    pod, facts = SILENT[name]
    facts = dict(facts)
    if asked_by == "claim" and pod.json()["spec"]["containers"][0].get("resources"):
        pod, facts = by_claim(pod), {"devices": [GPUS], **facts}
    owner, only = facts.pop("owner", None), facts.pop("only", "")
    owners = [a_job().annotated({KIND: owner})] if owner else []
    assert [warning for warning in warned(pod, *owners, **facts) if only in warning] == []


def test_an_annotation_s_port_that_no_container_has_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        warned(noted(a_trainer(ports=[{"name": "web", "containerPort": 80}]), "http", port="admin"))
    assert sentence(refused.value.refusal) == (
        f'metadata.annotations[{KIND}-port]: no container of the pod has a port named "admin"; write the port\'s '
        "number, or declare the name under ports"
    )


def test_what_an_operator_has_still_to_complete_is_no_mistake() -> None:
    """A TrainJob's or a KServe predictor's container has no image and no ports of its own yet."""
    assert warned(noted(a_trainer(image=""), "http", port="admin"), workload_type=None) == []
    assert warned(noted(a_trainer(image=""), "http", port="8080"), workload_type=None) == []


def test_a_gang_s_launcher_lacks_no_port() -> None:
    owner = a_workload("kubeflow.org/v1", "MPIJob").annotated({KIND: "http", f"{KIND}-port": "admin"})
    assert warned(a_pod().running("mpirun"), owner) == []


def places(text: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(text) if name]


@pytest.mark.parametrize("warning", WARNINGS)
@settings(max_examples=20)  # of each warning
@given(data=st.data())
def test_no_warning_is_longer_than_a_line(warning: str, data: st.DataObject) -> None:
    values = {name: data.draw(st.text(max_size=300) | st.integers()) for name in places(WARNINGS[warning])}
    text = sentence(AdmissionWarning(warning, **values))
    assert len(text) <= LONGEST
    assert text.startswith(f"[{warning}] ")


@pytest.mark.parametrize("warning", WARNINGS)
def test_a_long_name_still_shows_how_it_begins(warning: str) -> None:
    names = places(WARNINGS[warning])
    text = sentence(AdmissionWarning(warning, **{name: f"{name}-{'x' * 253}" for name in names}))
    assert len(text) == LONGEST or not names
    assert all(f"{name}-"[:5] in text for name in names), text
