"""What a command tells of a shell: whether it stays the first process, and how long a handler sleeps.

A shell as first process gets no default action for SIGTERM from Linux, and passes nothing on.
"""

import re
from typing import Any

from webhook.objects.containers import Container

LONGEST = 4_096
"""Characters of a script that are searched."""
_SHELL = re.compile(r"(.*/)?(ba|da|a|k|z)?sh")
_OWN_WAY = re.compile(r"(^|[;&|\n({])\s*(exec\s+[^\s<>&\d]|trap\s)")
"""The program takes the shell's place, or the shell listens."""
_SIMPLE = re.compile(r"[^;&|<>\n`$()]*")
_SLEEP = re.compile(r"(sleep|.*/sleep) ([0-9]{1,9})s?")


def is_first_process(container: Container) -> bool:
    """Whether a container surely starts as `sh -c` and the shell stays. A script in a file may do anything.

    bash takes itself away for a single plain command; other shells do not (tried with dash 0.5.12, bash 5.2).
    """
    words = (*container.command, *container.args)
    if not container.command or not _SHELL.fullmatch(words[0][:LONGEST]):
        return False
    script = _script(words)[:LONGEST].replace("\\\n", " ")
    alone = words[0].endswith("bash") and _SIMPLE.fullmatch(script.strip()) is not None
    return bool(script) and not alone and _OWN_WAY.search(script) is None


def _script(words: tuple[str, ...]) -> str:
    """What follows the option -c; "" where there is none."""
    for index, word in enumerate(words[1:-1], start=1):
        if re.fullmatch("-[a-z]*c", word[:LONGEST]):
            return words[index + 1]
        if not word.startswith(("-", "pipefail")):
            break
    return ""


def sleeps(handler: dict[str, Any]) -> int:
    """The seconds that a preStop handler is sure to sleep; 0 where nothing tells."""
    action, execution = handler.get("sleep"), handler.get("exec")
    if isinstance(action, dict) and isinstance(action.get("seconds"), int):
        return int(action["seconds"])
    words = execution.get("command") if isinstance(execution, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return 0
    script = _script(tuple(words)) or " ".join(words)
    found = _SLEEP.fullmatch(script[:LONGEST].strip())
    return int(found[2]) if found else 0
