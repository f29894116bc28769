"""Every kind of hook and every warning on a real API server, in a namespace that enforces the restricted standard."""

import json
from pathlib import Path

import pytest
import yaml

from installation.helm import ROOT
from webhook.policy.checkpoint.hook_kinds import ROWS
from webhook.policy.checkpoint.listen import ANNOTATIONS, listener, listener_texts

from .another_webhook import AnotherWebhook
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

KIND = "gpu-tiers.dev/checkpoint"
FOLDER = [{"name": "gpu-tiers-checkpoint", "emptyDir": {}}]
KINDS: dict[str, tuple[dict[str, str], object, int]] = {
    "file": ({}, ["exec"], 130),
    "listen": ({}, ["exec"], 130),
    "http": (
        {"-port": "admin", "-path": "/save"},
        {"httpGet": {"path": "/save", "port": 9000, "scheme": "HTTP"}},
        130,
    ),
    "exec": ({"-command": '["save", "to disk"]'}, {"exec": {"command": ["save", "to disk"]}}, 130),
    "signal": ({"-signal": "SIGUSR2"}, ["exec"], 130),
    "sigterm": ({"-timeout": "300"}, None, 310),
    "sleep": ({"-timeout": "40"}, {"sleep": {"seconds": 40}}, 50),
    "none": ({}, None, 30),
}
VARIABLES = {
    "sigterm": [{"name": "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "value": "300"}],
    "listen": [{"name": "PYTHONPATH", "value": "/opt/gpu-tiers/python"}],
}
EXAMPLES = sorted((ROOT / "examples" / "warnings").glob("*.yaml"))


def a_restricted_pod(name: str, kind: str) -> Tree:
    """A pod under the restricted standard, with a root that can't be written, that asks for a hook."""
    pod = gpu_pod(name, securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})
    pod["metadata"]["annotations"] = {KIND + field: text for field, text in {"": kind, **KINDS[kind][0]}.items()}
    pod["metadata"]["labels"] = {"gpu-tiers.dev/tier": "gpu-training"}
    container = pod["spec"]["containers"][0]
    container["ports"] = [{"name": "admin", "containerPort": 9000}]
    container["command"] = ["torchrun", "train.py"]
    container["securityContext"] = {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    return pod


def pre_stop(pod: Tree) -> object:
    """The handler; of a script only that it is one."""
    handler = pod["spec"]["containers"][0].get("lifecycle", {}).get("preStop")
    return ["exec"] if handler and "/bin/sh" in handler.get("exec", {}).get("command", []) else handler


def test_every_kind_is_tried_here() -> None:
    assert list(KINDS) == list(ROWS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_stored_under_the_restricted_standard(installed: Installed, namespace: str, kind: str) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    installed.cluster.kubectl("label", "namespace", namespace, "--overwrite", label)
    answer = installed.create(a_restricted_pod("work", kind), namespace)
    assert answer.code == 0, answer.stderr
    warnings = {"file": [], "listen": ["[python-path]"]}.get(kind, ["[hook-overrides-policy]"])
    assert [line.split()[1] for line in answer.stderr.splitlines() if line.startswith("Warning:")] == warnings
    pod = json.loads(answer.stdout)
    _, handler, grace = KINDS[kind]
    assert (pre_stop(pod), pod["spec"]["terminationGracePeriodSeconds"]) == (handler, grace)
    mounted = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "gpu-tiers-checkpoint"]
    assert mounted == (FOLDER if kind in ("file", "listen", "signal") else [])
    assert pod["spec"]["containers"][0].get("env", []) == VARIABLES.get(kind, [])


def test_a_second_pass_finds_every_kind_as_the_first_left_it(
    installed: Installed, namespace: str, tmp_path: Path
) -> None:
    """A webhook that comes after ours and changes the pod has the API server call ours again, defaults filled in."""
    sidecar = [{"op": "add", "path": "/spec/containers/-", "value": {"name": "mesh", "image": "registry.example/m:1"}}]
    with AnotherWebhook(installed.cluster, "zzz-hooks", namespace, sidecar, tmp_path):
        for kind, (_, handler, grace) in KINDS.items():
            pod = a_restricted_pod("work", kind)

            def seen(pod: Tree = pod) -> Tree:
                answer = installed.create(pod, namespace, dry_run=True)
                assert answer.code == 0, answer.stderr
                found: Tree = json.loads(answer.stdout)
                return found

            installed.eventually(lambda seen=seen: len(seen()["spec"]["containers"]) > 1, "the other webhook")
            found = seen()
            assert (pre_stop(found), found["spec"]["terminationGracePeriodSeconds"]) == (handler, grace), kind
            mounts = [mount["name"] for mount in found["spec"]["containers"][0].get("volumeMounts", [])]
            assert mounts.count("gpu-tiers-checkpoint") == (1 if kind in ("file", "listen", "signal") else 0)
            assert mounts.count("gpu-tiers-listener") == (1 if kind == "listen" else 0)
            assert found["spec"]["containers"][0].get("env", []) == VARIABLES.get(kind, [])


def test_a_job_s_annotations_reach_its_pods(installed: Installed, namespace: str) -> None:
    template = gpu_pod("x", restartPolicy="Never")["spec"]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "night", "annotations": {KIND: "http", f"{KIND}-port": "9000", f"{KIND}-timeout": "60"}},
        "spec": {"backoffLimit": 50, "template": {"spec": template}},
    }
    applied = installed.create(job, namespace)
    assert "[hook-port]" in applied.stderr
    assert (applied.stderr.count("[hook-port]"), applied.stderr.count("[lost-node]")) == (1, 1)
    installed.eventually(lambda: bool(installed.get("pods", namespace)["items"]), "the Job's pod")
    (pod,) = installed.get("pods", namespace)["items"]
    handler = {"httpGet": {"path": "/checkpoint", "port": 9000, "scheme": "HTTP"}}
    assert (pre_stop(pod), pod["spec"]["terminationGracePeriodSeconds"]) == (handler, 70)


def test_a_wrong_annotation_on_a_job_that_runs_is_refused_at_once(installed: Installed, namespace: str) -> None:
    """Otherwise each later pod of the Job would be refused, out of its author's sight."""
    job = job_of(gpu_pod("night"))
    job["metadata"]["annotations"] = {KIND: "signal"}
    assert installed.create(job, namespace).code == 0

    def annotate(*notes: str) -> tuple[int, str]:
        answer = installed.cluster.kubectl("annotate", "job/night", *notes, "--overwrite", "-n", namespace, check=False)
        return answer.code, answer.stderr

    for wrong, sentence in (
        (f"{KIND}=signl", '"signl" is not a kind of hook; write one of file,'),
        (f"{KIND}-timeout=5m", '"5m" is not a time to save; write seconds,'),
    ):
        code, said = annotate(wrong)
        assert (code, sentence in said) == (1, True), said
    code, said = annotate("gpu-tiers.dev/checkpiont=signal")
    assert (code, f"did you mean {KIND}?" in said) == (0, True), said
    assert annotate("gpu-tiers.dev/checkpiont-", "note=1") == (0, "")
    assert annotate(f"{KIND}-timeout=60") == (0, "")


def test_each_warning_is_read_where_its_example_is_applied(installed: Installed, namespace: str) -> None:
    served = installed.cluster.kubectl("api-versions").stdout.split()
    texts = {file: text for file in EXAMPLES if "kind: TenantQuota" not in (text := file.read_text())}
    alone = {file: text for file, text in texts.items() if "\n---\n" not in text}  # a dry run stores nothing for others
    texts = {file: text for file, text in alone.items() if yaml.safe_load(text)["apiVersion"] in served}
    manifests = "\n---\n".join(texts.values()).replace("namespace: team-alpha", f"namespace: {namespace}")
    answer = installed.cluster.kubectl("apply", "--dry-run=server", "-f", "-", input=manifests, check=False)
    assert answer.code == 0, answer.stderr
    said = [line for line in answer.stderr.splitlines() if line.startswith("Warning: [")]
    assert [line.partition("]")[0] for line in said] == [f"Warning: [{file.stem}" for file in texts]
    assert max(len(line.removeprefix("Warning: ")) for line in said) <= 120


REFUSED = {
    "a kind that there is not": (
        {"": "telepathy"},
        "is not a kind of hook; write one of file, listen, http, exec, signal",
    ),
    "a port that no container has": (
        {"": "http", "-port": "debug"},
        'no container of the pod has a port named "debug"',
    ),
    "no time": ({"": "file", "-timeout": "0"}, 'is not a time to save; write seconds, from "1" to "590"'),
    "a time before now": ({"": "file", "-timeout": "-5"}, "is not a time to save"),
    "a time without end": ({"": "file", "-timeout": "999999"}, "is not a time to save"),
    "a command that is not a list": ({"": "exec", "-command": '{"a": 1'}, "must be a command"),
    "a field of another kind": ({"": "file", "-command": "save"}, "a hook of kind file takes no command"),
}


@pytest.mark.parametrize("on_a_job", [False, True])
def test_a_hook_that_can_not_be_is_refused_on_apply(installed: Installed, namespace: str, *, on_a_job: bool) -> None:
    asked = [asking_for(fields, f"work-{number}") for number, (fields, _) in enumerate(REFUSED.values())]
    items = [job_of(pod) for pod in asked] if on_a_job else asked
    tree = {"apiVersion": "v1", "kind": "List", "items": items}
    refused = installed.create(tree, namespace, dry_run=True).stderr.splitlines()
    assert len(refused) == len(REFUSED)
    for (name, (_, sentence)), line in zip(REFUSED.items(), refused, strict=True):
        assert sentence in line, name


def asking_for(fields: dict[str, str], name: str) -> Tree:
    pod = a_restricted_pod(name, "none")
    pod["metadata"]["annotations"] = {KIND + field: text for field, text in fields.items()}
    return pod


def job_of(pod: Tree) -> Tree:
    metadata = pod["metadata"]
    template = {"metadata": metadata, "spec": {**pod["spec"], "restartPolicy": "Never"}}
    head = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": metadata["name"]}}
    return head | {"spec": {"template": template}}


def test_the_listener_stands_in_a_pod_as_a_dry_run_shows_it(installed: Installed, namespace: str) -> None:
    pod = a_restricted_pod("stock", "listen")
    shown = json.loads(installed.create(pod, namespace, dry_run=True).stdout)
    assert not installed.create(pod, namespace).code
    stored = installed.get("pod/stock", namespace)
    for each in (shown, stored):
        (volume,) = (found for found in each["spec"]["volumes"] if found["name"] == "gpu-tiers-listener")
        assert volume == listener("").volume, "as we write it, so that a second review finds it ours"
        container = each["spec"]["containers"][0]
        assert {"name": "PYTHONPATH", "value": "/opt/gpu-tiers/python"} in container["env"]
        assert listener("").mount in container["volumeMounts"]
        for file, text in listener_texts().items():
            assert each["metadata"]["annotations"][ANNOTATIONS[file]] == text


def test_the_api_server_takes_the_listener_from_an_image_as_we_write_it(installed: Installed, namespace: str) -> None:
    brought = listener("registry.example.com/gpu-tiers:1.0")
    pod = gpu_pod("imaged", volumes=[brought.volume])
    pod["spec"]["containers"][0]["volumeMounts"] = [brought.mount]
    shown = json.loads(installed.create(pod, namespace, dry_run=True).stdout)
    assert brought.volume in shown["spec"]["volumes"]
    assert brought.mount in shown["spec"]["containers"][0]["volumeMounts"]


FINE_TUNE = """\
apiVersion: batch/v1
kind: Job
metadata: {name: fine-tune, annotations: {gpu-tiers.dev/checkpoint: file}}
spec:
  backoffLimit: 3
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: train
        image: example.com/train:1
        command: [python, train.py]
        resources: {limits: {nvidia.com/gpu: 1}}
"""


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["apply", "server-side"])
def test_a_job_s_preemptions_do_not_count_and_a_second_apply_changes_nothing(
    installed: Installed, namespace: str, how: tuple[str, ...]
) -> None:
    apply = ("apply", *how, f"--namespace={namespace}", "-f", "-")
    first = installed.cluster.kubectl(*apply, input=FINE_TUNE)
    assert "job-backoff" not in first.stderr
    stored = installed.get("job/fine-tune", namespace)
    assert stored["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"] == [
        {"type": "DisruptionTarget", "status": "True"}
    ]
    assert stored["spec"]["podFailurePolicy"]["rules"][1]["onExitCodes"] == {
        "containerName": "train",
        "operator": "In",
        "values": [143],
    }
    assert stored["spec"]["podReplacementPolicy"] == "Failed"
    installed.cluster.kubectl(*apply, input=FINE_TUNE)
    again = installed.get("job/fine-tune", namespace)
    assert (again["spec"], again["metadata"]["generation"]) == (stored["spec"], stored["metadata"]["generation"])
    changed = FINE_TUNE.replace("backoffLimit: 3", "backoffLimit: 4")
    installed.cluster.kubectl(*apply, input=changed)
    last = installed.get("job/fine-tune", namespace)["spec"]
    assert (last["backoffLimit"], last["podFailurePolicy"]) == (4, stored["spec"]["podFailurePolicy"])


def test_who_chose_another_replacement_of_pods_keeps_it(installed: Installed, namespace: str) -> None:
    chosen = FINE_TUNE.replace("  backoffLimit: 3", "  backoffLimit: 3\n  podReplacementPolicy: TerminatingOrFailed")
    for how in ((), ("--server-side", "--force-conflicts")):
        applied = installed.cluster.kubectl("apply", *how, f"--namespace={namespace}", "-f", "-", input=chosen)
        assert "podFailurePolicy" not in installed.get("job/fine-tune", namespace)["spec"], applied.stderr
        installed.cluster.kubectl("delete", "job", "fine-tune", f"--namespace={namespace}", "--cascade=foreground")


def test_a_running_job_s_controller_hears_nothing_again(installed: Installed, namespace: str) -> None:
    text = (ROOT / "examples" / "warnings" / "job-backoff.yaml").read_text()
    text = text.replace("namespace: team-alpha", f"namespace: {namespace}")
    first = installed.cluster.kubectl("apply", "-f", "-", input=text)
    annotate = ("annotate", "job/four-preemptions", f"--namespace={namespace}", "seen=yes")
    again = installed.cluster.kubectl(*annotate)
    assert "[job-backoff]" in first.stderr
    assert again.stderr == ""
