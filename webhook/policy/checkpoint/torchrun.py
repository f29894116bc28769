"""Whether torchrun would kill its workers before the grace is over, and the setting that keeps it from that.

It gives them 30 s after SIGTERM, whatever the pod's grace. Since torch 2.12 a variable or an option says otherwise;
older ones read neither. Source: https://github.com/pytorch/pytorch/pull/172596
"""

import re

from webhook.objects.containers import Container

VARIABLE = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
OWN_SECONDS = 30
LONGEST = 4_096
"""Characters of a command that are searched."""
_LAUNCHER = re.compile(r"\b(torchrun|torch\.distributed\.(run|launch)|accelerate(\.commands\.| )launch)\b")
_OPTION = re.compile(r"--shutdown[-_]timeout\b")


def patience(container: Container, seconds: int) -> str | None:
    """The value of the variable that lets the workers of a container save for so long; None if it isn't needed.

    What the user said stays: a variable of that name, the option, or a list of variables (`envFrom`) that may hold it.
    """
    command = " ".join((*container.command, *container.args))[:LONGEST]
    if seconds <= OWN_SECONDS or not _LAUNCHER.search(command) or _OPTION.search(command) or container.env_from:
        return None
    return None if any(each.name == VARIABLE for each in container.env) else str(seconds)
