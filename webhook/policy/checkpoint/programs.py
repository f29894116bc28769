"""Tells from a container's command how its program ends: a shell before it, torchrun, and where it saves.

Linux applies no default action for SIGTERM to a container's first process. A shell there does not end, and does not
pass the signal on.

torchrun gives its workers 30 s after SIGTERM, whatever the pod's grace period. Since torch 2.12 a variable or an option
changes that; older versions read neither. Source: https://github.com/pytorch/pytorch/pull/172596
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from webhook.objects.pods import Container, Pod

LONGEST = 4_096
"""Characters of a command or script that are searched."""
_SHELL = re.compile(r"(.*/)?(ba|da|a|k|z)?sh")
_OWN_WAY = re.compile(r"(^|[;&|\n({])\s*(exec\s+[^\s<>&\d]|trap\s)")
"""The program replaces the shell, or the shell handles signals."""
_SIMPLE = re.compile(r"[^;&|<>\n`$()]*")
_SLEEP = re.compile(r"(sleep|.*/sleep) ([0-9]{1,9})s?")

VARIABLE = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
OWN_SECONDS = 30
_LAUNCHER = re.compile(r"\b(torchrun|torch\.distributed\.(run|launch)|accelerate(\.commands\.| )launch)\b")
_OPTION = re.compile(r"--shutdown[-_]timeout\b")

_CHECKPOINT = re.compile(
    r"-{0,2}([a-z]+[-_])*(checkpoint|ckpt)s?([-_](dir|path|folder|directory|root))?", re.IGNORECASE
)


def is_first_process(container: Container) -> bool:
    """Tell whether a container surely starts as `sh -c` and the shell stays. A script in a file may do anything.

    bash replaces itself for a single plain command; other shells do not (tried with dash 0.5.12, bash 5.2).
    """
    words = (*container.command, *container.args)
    if not container.command or not _SHELL.fullmatch(words[0][:LONGEST]):
        return False
    script = _script(words)[:LONGEST].replace("\\\n", " ")
    alone = words[0].endswith("bash") and _SIMPLE.fullmatch(script.strip()) is not None
    return bool(script) and not alone and _OWN_WAY.search(script) is None


def _script(words: tuple[str, ...]) -> str:
    """Return what follows the option -c; "" where there is none."""
    for index, word in enumerate(words[1:-1], start=1):
        if re.fullmatch("-[a-z]*c", word[:LONGEST]):
            return words[index + 1]
        if not word.startswith(("-", "pipefail")):
            break
    return ""


def sleeps(handler: dict[str, Any]) -> int:
    """Return the seconds that a preStop handler is sure to sleep; 0 if unknown."""
    action, execution = handler.get("sleep"), handler.get("exec")
    if isinstance(action, dict) and isinstance(action.get("seconds"), int):
        return int(action["seconds"])
    words = execution.get("command") if isinstance(execution, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return 0
    script = _script(tuple(words)) or " ".join(words)
    found = _SLEEP.fullmatch(script[:LONGEST].strip())
    return int(found[2]) if found else 0


def shutdown_timeout(container: Container, seconds: int) -> str | None:
    """Return the value of the variable that lets a container's workers save for so long; None if it isn't needed.

    The user's setting stays: a variable of that name, the option, or a list of variables (`envFrom`) that may have it.
    """
    command = " ".join((*container.command, *container.args))[:LONGEST]
    if seconds <= OWN_SECONDS or not _LAUNCHER.search(command) or _OPTION.search(command) or container.env_from:
        return None
    return None if any(each.name == VARIABLE for each in container.env) else str(seconds)


def lost_checkpoints(container: Container, pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield each checkpoint path that surely lies on an emptyDir, which is lost with the pod, and the volume's name.

    The name says checkpoint, the path lies in the volume, and no other container mounts it to carry the files away.
    """
    emptydirs = {volume.name for volume in pod.spec.volumes if volume.empty_dir is not None}
    if not emptydirs:
        return
    # 1. Find possible paths and their names: variables, `--ckpt-dir=/x`, `--ckpt-dir /x`.
    words = (*container.command, *container.args)
    pairs = [(each.name, each.value) for each in container.env if isinstance(each.value, str) and each.value[:1] == "/"]
    pairs += [(name, value) for name, _, value in (word.partition("=") for word in words) if value[:1] == "/"]
    pairs += [(word, after) for word, after in pairwise(words) if word[:1] == "-" and after[:1] == "/"]

    # 2. The path lies in the volume that is mounted deepest.
    for path in (value for name, value in pairs if _CHECKPOINT.fullmatch(name[:100])):
        mounts = [each for each in container.volume_mounts if f"{path}/".startswith(f"{each.mount_path.rstrip('/')}/")]
        volume = max(mounts, key=lambda mount: len(mount.mount_path)).name if mounts else ""
        others = (each for _, each in pod.spec.every_container() if each is not container)
        shared = any(mount.name == volume for other in others for mount in other.volume_mounts)
        if volume in emptydirs and not shared:
            yield path, volume
