"""The table of hook kinds: the fields that each takes, its preStop handler, and its needs.

Source of the handlers: https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/; the sleep action is
KEP-3960, on from 1.30. Each handler is written as the API server stores it, so that it can be recognized.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from webhook.objects.data_files import data_file
from webhook.objects.view import Tree
from webhook.policy.values.tier_policy import Hook, HookKind

SIGNALS = ("HUP", "INT", "QUIT", "USR1", "USR2", "TERM")
"""The signals that may mean "save now" (POSIX names, as `kill -s` takes them)."""
HIGHEST_PORT = 65_535
LONGEST_COMMAND = 4_096
"""Characters of a command. Longer scripts belong in the image."""
LONGEST_PATH = 1_024
NO_PATH = "none"
"""The value of the field `python_path` for images that set no PYTHONPATH."""

_PORT_NAME = re.compile(r"(?=[a-z0-9-]{1,15}\Z)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
"""IANA_SVC_NAME, as the API server has it for ports."""
_FILE = re.compile(r"/[A-Za-z0-9/._-]*")
_SEARCH_PATH = re.compile(r"/[!-9;-~]*(:/[!-9;-~]*)*")
_URL_PATH = re.compile(r"/[!-~]*")


def port(value: int | str) -> int | str:
    number = int(value) if re.fullmatch("[0-9]{1,6}", str(value)) else 0
    if 0 < number <= HIGHEST_PORT:
        return number
    if isinstance(value, str) and _PORT_NAME.fullmatch(value):
        return value
    raise ValueError(f"must be a port: a number from 1 to {HIGHEST_PORT}, or a port's name")


def file_path(value: str) -> str:
    """Return the path of a folder or file that a shell reads literally, without a slash at its end."""
    if len(value) > LONGEST_PATH or not _FILE.fullmatch(value) or ".." in value.split("/") or not value.strip("/"):
        raise ValueError("must be an absolute path below / of letters, digits and . _ - /")
    return value.rstrip("/")


def search_path(value: str) -> str:
    """Read the PYTHONPATH of a pod's images: absolute folders separated by `:`, or `none`."""
    if value != NO_PATH and (len(value) > LONGEST_PATH or not _SEARCH_PATH.fullmatch(value)):
        raise ValueError(f"must be the image's own PYTHONPATH, absolute folders with : between, or {NO_PATH}")
    return value


def url_path(value: str) -> str:
    if len(value) > LONGEST_PATH or not _URL_PATH.fullmatch(value):
        raise ValueError("must be a URL's path: / and printable ASCII without blanks")
    return value


def signal(value: str) -> str:
    """Return a signal's POSIX name; SIGUSR1 is USR1."""
    name = value.removeprefix("SIG")
    if name not in SIGNALS:
        raise ValueError(f"must be a signal that a program can catch: {', '.join(SIGNALS)}")
    return name


def command(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return a program and its arguments. Text is a JSON list, or is split into words as a shell does."""
    words: tuple[str, ...] = () if isinstance(value, str) else value
    if isinstance(value, str) and len(value) <= LONGEST_COMMAND:
        is_json = value.startswith(("[", "{"))  # no program's name starts this way
        with suppress(ValueError, RecursionError):  # msgspec's errors are ValueErrors
            words = msgspec.json.decode(value, type=tuple[str, ...]) if is_json else tuple(shlex.split(value))
    if not words or not words[0] or any("\0" in word for word in words):
        raise ValueError(f"must be a command: a list of texts, {LONGEST_COMMAND} characters at most")
    return words


def boolean(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError("must be true or false")
    return value == "true"


FOLDER = "/run/gpu-tiers"
_TABLE = data_file(__name__, "hook_kinds.yaml")
TERMINATION_LOG = "/dev/termination-log"
"""The file of the container's termination message, which outlives the container in the pod's status. Our file and
signal handlers write their outcome there:
https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/. If that file lies elsewhere or
can't be written, the hook still works and the outcome is unknown."""
_TELLS = f'gpu-tiers: %s\\n\' "$1" >>{TERMINATION_LOG}'
"""The part of the scripts of both handlers that writes the outcome."""


def file_handler(path: str, seconds: int) -> Tree:
    """Return the preStop handler of the file protocol. It returns at once unless a listener has announced itself.

    A failed or unconfirmed save ends the handler with 1, which the kubelet reports as FailedPreStopHook. The folder
    outlives a container that restarts in place, so the handler clears an old answer first and an answered request last.
    After a save its last act is `exec`, because the program, and with it the container, ends once the request is gone.
    """
    return _shell(_TABLE["waitForSave"].format(path=path, seconds=seconds, log=TERMINATION_LOG))


def signal_handler(signal: str, done_file: str, seconds: int) -> Tree:
    """Return the handler that signals the first process and waits for the done file.

    It exits with 1 if the signal can't be sent, or if there is no file after so many seconds.

    Linux drops a signal without a handler to the first process of a container, so a program that has none survives.
    """
    fields = {"signal": signal, "done_file": done_file, "seconds": seconds, "log": TERMINATION_LOG}
    return _shell(_TABLE["signalAndWait"].format_map(fields))


def tells(handler: Tree) -> bool:
    """Tell whether a preStop handler is our file or signal handler, which write their outcome."""
    command = (handler.get("exec") or {}).get("command") or ()
    return any(_TELLS in str(each) for each in command)


def kind_seen(handlers: Iterable[Tree], *, listens: bool) -> str:
    """Return the kind of hook of the first of a pod's preStop handlers. `listens`: a listener is mounted.

    A program that saves at SIGTERM also counts as "none", because that is invisible. A user's own handler counts as
    http, sleep or exec, by its action.
    """
    handler = next(iter(handlers), {})
    if not tells(handler):
        return next((kind for kind, key in _ACTIONS.items() if key in handler), "none")
    by_signal = "kill -s" in str(handler["exec"]["command"])
    return "signal" if by_signal else "listen" if listens else "file"


_ACTIONS: Mapping[str, str] = {"http": "httpGet", "sleep": "sleep", "exec": "exec"}


def _shell(script: str) -> Tree:
    return {"exec": {"command": ["/bin/sh", "-c", script]}}


class HookRow(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A kind of hook. `takes` are the fields of a Hook with their defaults.

    `seconds` is the time of a hook that sets none. `needs_shell`: the image needs /bin/sh. docs/checkpointing.md says
    what each kind does and when to use it.
    """

    takes: Mapping[str, str | bool | None] = msgspec.field(default_factory=dict)
    needs_shell: bool = False
    seconds: int = 120


ROWS = msgspec.convert(_TABLE["kinds"], dict[HookKind, HookRow])
REQUIRED = None
"""The value in `takes` for a field without a default: somebody has to write it."""


def handler_of(hook: Hook) -> Tree | None:
    """Make the preStop handler of a hook; None for a kind that has none."""
    match hook.kind:
        case "file" | "listen":
            return file_handler(hook.path, hook.seconds)
        case "http":
            return {"httpGet": {"path": hook.path, "port": hook.port, "scheme": "HTTP"}}
        case "exec":
            return {"exec": {"command": list(hook.command)}}
        case "signal":
            return signal_handler(hook.signal, hook.done_file, hook.seconds)
        case "sleep":
            return {"sleep": {"seconds": hook.seconds}}
    return None


READERS: Mapping[str, Callable[[Any], Any]] = {
    "path": file_path,
    "port": port,
    "command": command,
    "signal": signal,
    "done_file": file_path,
    "python_path": search_path,
    "reports": boolean,
}
"""The reader of each field, which raises ValueError; the path of `http` is a URL's and has another one."""


def reader(kind: HookKind, name: str) -> Callable[[Any], Any]:
    """Return the function that reads a field's value for a kind; it raises ValueError."""
    return url_path if (kind, name) == ("http", "path") else READERS[name]


def unwanted(kind: HookKind, given: Iterable[str]) -> str | None:
    """Return the first of the `given` fields that a kind does not take; None if it takes all."""
    return next((name for name in given if name not in ROWS[kind].takes), None)


def missing(kind: HookKind, given: Iterable[str]) -> str | None:
    """Return the first field that a kind needs and that is not `given`; None if all are."""
    there = set(given)
    return next((name for name, default in ROWS[kind].takes.items() if default is REQUIRED and name not in there), None)


def completed(kind: HookKind, seconds: int | None, given: Mapping[str, Any]) -> Hook:
    """Return the hook with these checked fields, completed from the table."""
    row = ROWS[kind]
    return Hook(kind, row.seconds if seconds is None else seconds, **{**row.takes, **given})
