"""The hook annotations on the pod and its owners, and the sentence about those that ask for nothing."""

import pytest

from tests.builders import PodBuilder, WorkloadBuilder, a_deployment, a_job, a_pod, a_policy
from tests.builders.words import told
from webhook.objects.refusal import Refused
from webhook.policy.checkpoint.hook_plan import FIELDS, HookRequest, requested_hook
from webhook.policy.values.tier_policy import Hook, WorkloadType

KIND = "gpu-tiers.dev/checkpoint"
TRAINING = WorkloadType.TRAINING
POD = a_pod().asking()
FILE = Hook("file", 120, "/run/gpu-tiers")


def asked(
    pod: PodBuilder, *owners: WorkloadBuilder, workload_type: WorkloadType | None = TRAINING, **checkpoint: object
) -> HookRequest:
    policy = a_policy(checkpoint=checkpoint) if checkpoint else a_policy()
    return requested_hook(pod.view(), workload_type, None, [owner.view() for owner in owners], policy.checkpoint)


def notes(kind: str | None, **more: str) -> dict[str, str]:
    """Annotations: the kind, and its fields by the end of their names."""
    fields = {f"{KIND}-{name.replace('_', '-')}": value for name, value in more.items()}
    return fields if kind is None else {KIND: kind, **fields}


def test_the_annotations_are_those_of_the_documentation() -> None:
    assert set(FIELDS.values()) == {
        f"{KIND}-{name}" for name in ("path", "port", "command", "signal", "done-file", "python-path", "reports")
    }


HOOKS: dict[str, tuple[dict[str, str], Hook]] = {
    "nothing": ({}, FILE),
    "a time": (notes(None, timeout="60"), Hook("file", 60, "/run/gpu-tiers")),
    "another folder": (notes(None, path="/data/hook"), Hook("file", 120, "/data/hook")),
    "reports": (notes(None, reports="true"), Hook("file", 120, "/run/gpu-tiers", reports=True)),
    "http": (notes("http", port="8080"), Hook("http", 120, "/checkpoint", 8080)),
    "http, all of it": (
        notes("http", port="admin", path="/save?all=1", timeout="9"),
        Hook("http", 9, "/save?all=1", "admin"),
    ),
    "exec, a JSON list": (
        notes("exec", command='["sh", "-c", "save\\nsync"]'),
        Hook("exec", 120, command=("sh", "-c", "save\nsync")),
    ),
    "exec, words": (
        notes("exec", command="save --to 'my disk'"),
        Hook("exec", 120, command=("save", "--to", "my disk")),
    ),
    "signal": (notes("signal"), Hook("signal", 120, signal="USR1", done_file="/run/gpu-tiers/done")),
    "signal, all of it": (
        notes("signal", signal="SIGUSR2", done_file="/data/done"),
        Hook("signal", 120, signal="USR2", done_file="/data/done"),
    ),
    "listen": (notes("listen"), Hook("listen", 120, "/run/gpu-tiers", reports=True)),
    "listen, all of it": (
        notes("listen", path="/data/hook", python_path="/app:/app/src", reports="false"),
        Hook("listen", 120, "/data/hook", python_path="/app:/app/src"),
    ),
    "sigterm": (notes("sigterm"), Hook("sigterm")),
    "sleep": (notes("sleep"), Hook("sleep", 15)),
    "none": (notes("none"), Hook("none")),
}


@pytest.mark.parametrize("name", HOOKS)
def test_what_annotations_ask_for(name: str) -> None:
    annotations, hook = HOOKS[name]
    assert asked(POD.annotated(annotations)).hook == hook
    assert asked(POD, a_job().annotated(annotations)).hook == hook


def test_the_policy_knows_how_long_a_save_takes_and_not_how_long_to_drain() -> None:
    training = {"kind": "file", "seconds": 300}
    assert asked(POD.annotated(notes("sigterm")), training=training).hook == Hook("sigterm", 300)
    assert asked(POD.annotated(notes("sleep")), training=training).hook == Hook("sleep", 15)
    assert asked(POD.annotated(notes("file")), training={"kind": "sleep"}).hook == FILE


def test_the_policy_s_own_fields_stand_where_the_kind_is_its_own() -> None:
    training = {"kind": "http", "port": 9000, "path": "/save"}
    assert asked(POD.annotated(notes("http")), training=training).hook == Hook("http", 120, "/save", 9000)
    assert asked(POD.annotated(notes(None, path="/all")), training=training).hook == Hook("http", 120, "/all", 9000)


def test_the_nearest_that_says_it_decides() -> None:
    job, cron = (
        a_job().annotated(notes(None, timeout="60")),
        a_job(name="cron").annotated(notes("sigterm", timeout="90")),
    )
    assert asked(POD, job, cron).hook == Hook("sigterm", 60)
    assert asked(POD.annotated(notes(None, timeout="30")), job, cron).hook == Hook("sigterm", 30)


def test_what_an_owner_says_of_its_kind_says_nothing_of_another() -> None:
    owner = a_deployment().annotated(notes("http", port="8080", timeout="60"))
    assert asked(POD.annotated(notes("signal")), owner).hook == Hook(
        "signal", 60, signal="USR1", done_file="/run/gpu-tiers/done"
    )
    assert asked(POD.annotated(notes(None, path="/save")), owner).hook == Hook("http", 60, "/save", 8080)


PORT = "must be a port: a number from 1 to 65535, or a port's name"
COMMAND = "must be a command: a list of texts, 4096 characters at most"
FILE_PATH = "must be an absolute path below / of letters, digits and . _ - /"
URL_PATH = "must be a URL's path: / and printable ASCII without blanks"
SIGNAL = "must be a signal that a program can catch: HUP, INT, QUIT, USR1, USR2, TERM"
DROP = f"drop it, or write {KIND}:"
REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "a port of 0": (notes("http", port="0"), f'[{KIND}-port]: "0" {PORT}'),
    "a port too high": (notes("http", port="65536"), f'[{KIND}-port]: "65536" {PORT}'),
    "a port below 0": (notes("http", port="-1"), f'[{KIND}-port]: "-1" {PORT}'),
    "no port's name": (notes("http", port="Admin Port"), f'[{KIND}-port]: "Admin Port" {PORT}'),
    "a port's name too long": (notes("http", port="a" * 16), f'[{KIND}-port]: "{"a" * 16}" {PORT}'),
    "an empty port": (notes("http", port=""), f'[{KIND}-port]: "" {PORT}'),
    "no port": (notes("http"), f"[{KIND}]: a hook of kind http needs a port; write {KIND}-port"),
    "no command": (notes("exec"), f"[{KIND}]: a hook of kind exec needs a command; write {KIND}-command"),
    "an empty command": (notes("exec", command=""), f'[{KIND}-command]: "" {COMMAND}'),
    "an empty list": (notes("exec", command="[]"), f'[{KIND}-command]: "[]" {COMMAND}'),
    "a list of numbers": (notes("exec", command="[1]"), f'[{KIND}-command]: "[1]" {COMMAND}'),
    "a list without its end": (notes("exec", command='["a"'), f'[{KIND}-command]: "["a"" {COMMAND}'),
    "a list that is deep": (notes("exec", command="[" * 4000), f'[{KIND}-command]: "{"[" * 63}…" {COMMAND}'),
    "a map": (notes("exec", command='{"a": 1}'), f'[{KIND}-command]: "{{"a": 1}}" {COMMAND}'),
    "an open quotation": (notes("exec", command="save 'x"), f'[{KIND}-command]: "save \'x" {COMMAND}'),
    "a command of a megabyte": (notes("exec", command="x" * 2**20), f'[{KIND}-command]: "{"x" * 63}…" {COMMAND}'),
    "a yes that is no true": (notes("file", reports="yes"), f'[{KIND}-reports]: "yes" must be true or false'),
    "reports of a hook that has none": (
        notes("sigterm", reports="true"),
        f"[{KIND}-reports]: a hook of kind sigterm takes no reports; {DROP} file or listen",
    ),
    "a folder that is relative": (notes("file", path="run"), f'[{KIND}-path]: "run" {FILE_PATH}'),
    "a folder that a shell would read otherwise": (
        notes("file", path="/$(id)"),
        f'[{KIND}-path]: "/$(id)" {FILE_PATH}',
    ),
    "a folder above": (notes("file", path="/run/../etc"), f'[{KIND}-path]: "/run/../etc" {FILE_PATH}'),
    "a folder on two lines": (notes("file", path="/run\n"), f'[{KIND}-path]: "/run " {FILE_PATH}'),
    "a URL's path with a blank": (notes("http", port="1", path="/a b"), f'[{KIND}-path]: "/a b" {URL_PATH}'),
    "a whole URL": (notes("http", port="1", path="http://x/"), f'[{KIND}-path]: "http://x/" {URL_PATH}'),
    "a signal that nobody catches": (notes("signal", signal="SIGKILL"), f'[{KIND}-signal]: "SIGKILL" {SIGNAL}'),
    "a signal's number": (notes("signal", signal="10"), f'[{KIND}-signal]: "10" {SIGNAL}'),
    "a done file that is relative": (notes("signal", done_file="done"), f'[{KIND}-done-file]: "done" {FILE_PATH}'),
    "a field of another kind": (
        notes("file", port="8080"),
        f"[{KIND}-port]: a hook of kind file takes no port; {DROP} http",
    ),
    "a field against the policy's kind": (
        notes(None, command="save"),
        f"[{KIND}-command]: a hook of kind file takes no command; {DROP} exec",
    ),
    "a field of no hook": (
        notes("none", done_file="/done"),
        f"[{KIND}-done-file]: a hook of kind none takes no done file; {DROP} signal",
    ),
    "a path of two kinds": (
        notes("sleep", path="/x"),
        f"[{KIND}-path]: a hook of kind sleep takes no path; {DROP} file, listen or http",
    ),
    "an empty kind": (
        notes(""),
        f'[{KIND}]: "" is not a kind of hook; write one of file, listen, http, exec, signal, sigterm, sleep, none',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_t_be_is_refused_with_its_field(name: str) -> None:
    annotations, sentence = REFUSED[name]
    with pytest.raises(Refused) as refused:
        asked(POD.annotated(annotations))
    assert told(refused.value) == f"metadata.annotations{sentence}"
    with pytest.raises(Refused) as refused:
        asked(POD, a_job(name="night").annotated(annotations))
    assert told(refused.value) == f"Job/night.metadata.annotations{sentence}"
