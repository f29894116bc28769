"""One pod for each kind of hook and each way that it may go, as a user writes it. Their programs lie in programs/."""

import yaml

from demonstration.workloads import Tree, container, gpu_pod
from installation.helm import ROOT
from tests.docs.markdown import page

from .shellless import SHELL_LESS_IMAGE

HOOK = "gpu-tiers.dev/checkpoint"
CHECKPOINT = "/tmp/checkpoint"  # noqa: S108 - in a container


def hooked(name: str, *command: str, kind: str, seconds: int = 60, **fields: str) -> Tree:
    """A batch pod that asks for a hook by annotations: `done_file` is gpu-tiers.dev/checkpoint-done-file."""
    asked = {f"{HOOK}-{field.replace('_', '-')}": value for field, value in fields.items()}
    asked |= {HOOK: kind, f"{HOOK}-timeout": str(seconds)}
    return gpu_pod(name, *command, tier="gpu-batch", annotations=asked)


def python(program: str, *arguments: str) -> list[str]:
    return ["python3", f"/code/{program}.py", *arguments]


def by_port_name() -> Tree:
    pod = hooked("http", *python("by_http"), kind="http", port="admin")
    pod["spec"]["containers"][0]["ports"] = [{"name": "admin", "containerPort": 9000}]
    return pod


def without_a_shell() -> Tree:
    pod = hooked("http-without-a-shell", *python("by_http"), kind="http", port="9000", path="/save")
    pod["spec"]["containers"][0]["image"] = SHELL_LESS_IMAGE
    return pod


def with_little_grace() -> Tree:
    pod = hooked("sigterm", *python("at_sigterm"), kind="sigterm")
    pod["spec"]["terminationGracePeriodSeconds"] = 3
    return pod


def opted_out() -> Tree:
    """Its name says training, for which the policy has the file hook; its program would listen to that."""
    return gpu_pod("finetune-llm", *python("by_file"), tier="gpu-training", annotations={HOOK: "none"})


def with_a_sidecar() -> Tree:
    pod = hooked("sidecar", *python("by_file", "uploader"), kind="file")
    sidecar = container(*python("helper", "uploader"), name="uploader") | {"restartPolicy": "Always"}
    pod["spec"]["initContainers"] = [sidecar]
    return pod


def with_a_helper() -> Tree:
    pod = hooked("helper", *python("by_file", "helper"), kind="file")
    pod["spec"]["containers"].append(container(*python("helper", "helper"), name="helper"))
    return pod


def outrunning_its_grace() -> Tree:
    pod = hooked("outrun", *python("by_signal", "SIGUSR1", "/run/done"), kind="exec", seconds=1, command="sleep 3600")
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    return pod


def restricted() -> Tree:
    """Return a pod as the Pod Security Standard wants it, on a read-only root file system."""
    pod = hooked("restricted", *python("by_file"), kind="file")
    pod["spec"]["securityContext"] = {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    pod["spec"]["containers"][0]["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    return pod


def as_documented() -> Tree:
    """The loop that docs/checkpointing.md shows, round a save."""
    blocks = page("docs/checkpointing.md").blocks("python")
    (loop,) = (block.text for block in blocks if "The file protocol" in block.headings)
    rounds = "while True:\n    time.sleep(0.1)\n    after_each_step(story.save)\n"
    prelude = "import signal, story\nsignal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
    return hooked("documented", "python3", "-c", f"{prelude}{loop}\nstory.tell('started')\n{rounds}", kind="file")


def the_example() -> Tree:
    """examples/pod-training.yaml, but for its image, its node and the folder of its checkpoint."""
    pod: Tree = yaml.safe_load((ROOT / "examples" / "pod-training.yaml").read_text())
    del pod["metadata"]["namespace"], pod["spec"]["nodeSelector"]
    (main,) = pod["spec"]["containers"]
    (script,) = main["args"]
    assert script.count(CHECKPOINT) == 1
    script = script.replace(CHECKPOINT, "/data/journal")
    main |= container("python3", "-c", script, gpus=1, name=main["name"])
    del main["args"]
    main["readinessProbe"] = {"exec": {"command": ["test", "-e", "/run/gpu-tiers/listening"]}, "periodSeconds": 1}
    return pod


PODS = (
    by_port_name(),
    without_a_shell(),
    hooked("http-500", *python("by_http"), kind="http", port="9000", path="/fails"),
    hooked("exec", *python("by_command"), kind="exec", command="python3 /code/by_command.py ask"),
    hooked("signal", *python("by_signal", "SIGUSR1", "/run/gpu-tiers/done"), kind="signal"),
    hooked(
        "signal-hup", *python("by_signal", "SIGHUP", "/run/done"), kind="signal", signal="HUP", done_file="/run/done"
    ),
    with_little_grace(),
    opted_out(),
    with_a_sidecar(),
    with_a_helper(),
    restricted(),
    hooked("fails", *python("by_http"), kind="exec", command="false"),
    outrunning_its_grace(),
    as_documented(),
    the_example(),
)
