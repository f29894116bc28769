"""The folder that hook and listener share, the environment, and the line on stderr.

Why files: the hook is a shell script that runs beside the program, in the same container.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from typing import Any

FOLDER = os.environ.get("GPU_TIERS_FOLDER") or "/run/gpu-tiers"
REQUEST = os.path.join(FOLDER, "request")
RUN = os.environ.get("GPU_TIERS_RUN", "")
"""Who is the same run: the UID of the workload, which outlives its pods. Without it nothing is resumed."""
ANYWHERE = os.environ.get("GPU_TIERS_LISTEN_EPHEMERAL") == "on"
"""Listen even where a checkpoint is gone with the pod."""
MEET_SECONDS = float(os.environ.get("GPU_TIERS_LISTEN_MEET_SECONDS") or 60)
"""How long ranks wait for one another."""
SAVE_SECONDS = 3600.0
"""How long ranks wait for one that still writes."""
TERMINATION_LOG = os.environ.get("GPU_TIERS_TERMINATION_LOG") or "/dev/termination-log"
TERMINATED = 143
"""How the program ends after a save: as after SIGTERM, so that its Job tries again."""


def say(what: str) -> None:
    sys.stderr.write("gpu-tiers listen: %s\n" % what)
    sys.stderr.flush()


def shared(name: str) -> str:
    return os.path.join(FOLDER, name)


def put(name: str, text: str = "") -> None:
    with open(shared(name), "w") as file:
        file.write(text)


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def requested() -> bool:
    return os.access(REQUEST, os.F_OK)  # half the time of os.path.exists, which raises within


def write_json(path: str, tree: Any) -> None:
    """Write the whole file or nothing."""
    unfinished = "%s.%d" % (path, os.getpid())
    with open(unfinished, "w") as file:
        json.dump(tree, file)
    os.replace(unfinished, path)


def read_json(path: str) -> dict[str, Any]:
    """Return the object in the file; {} if there is no file or no JSON object."""
    try:
        with open(path) as file:
            tree = json.load(file)
    except (OSError, ValueError):
        return {}
    return tree if isinstance(tree, dict) else {}


def quietly(what: Callable[..., Any], *args: Any) -> Any:
    """Call `what`; if it raises, say so and return None. SystemExit ends the program."""
    try:
        return what(*args)
    except Exception as error:
        try:
            say(repr(error))
        except Exception:
            pass
        return None


HANDLED = object()
"""What `before` answers if the original shall not be called."""


def around(
    original: Callable[..., Any],
    before: Callable[[list[Any], dict[str, Any]], Any],
    after: Callable[[Any, BaseException | None], Any],
) -> Callable[..., Any]:
    """Wrap a function of the program: `before` may change the arguments or answer HANDLED, `after` gets the answer.

    What ours raise ends nothing, SystemExit apart. What the original raises, which `after` gets too, is the program's.
    """

    @functools.wraps(original)
    def call(*given: Any, **named: Any) -> Any:
        args, kwargs = list(given), dict(named)
        answer = quietly(before, args, kwargs)
        if answer is HANDLED:
            return None
        raised: BaseException | None = None
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            raised = error
            raise
        finally:
            quietly(after, answer, raised)

    return call
