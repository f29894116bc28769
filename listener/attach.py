"""The part that both frameworks share: one call of train() or fit() with a listener.

It acts only in the process that called, never in a worker of it, and not before the program trains.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from listener.agree import Ranks
from listener.end import end, wait_for_hook
from listener.mark import Mark
from listener.progress import Progress
from listener.protocol import ANYWHERE, FOLDER, TERMINATED, put, quietly, remove, requested, say, shared
from listener.report import Reporter
from listener.resume import Tries, agreed
from listener.volatile import vanishes

UNBOUNDED = 1 << 39
"""The last step of a training that has none."""
_calls = [0]


def next_call() -> int:
    _calls[0] += 1
    return _calls[0]


def version(module: Any) -> tuple[int, int]:
    """(5, 23) of a framework whose version is 5.23.0.dev0."""
    numbers = re.findall("[0-9]+", str(getattr(module, "__version__", "")))
    return (int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else (0, 0)


def guarded(listener: Listener, what: Callable[..., Any], *args: Any) -> Any:
    """Call a part of the listener; if it fails, the listener stops and the training goes on."""
    if listener.off or os.getpid() != listener.pid:
        return None
    try:
        return what(*args)
    except Exception as error:
        quietly(listener.stop, error)
        return None


def callback(base: type, listener: Listener, events: Mapping[str, Callable[..., Any]]) -> Any:
    """A callback of the framework. Its class can't be written here, as that would import the framework."""

    def guard(what: Callable[..., Any]) -> Callable[..., Any]:
        def event(_self: Any, *args: Any, **_: Any) -> None:
            guarded(listener, what, *args)

        return event

    return type("GpuTiersListener", (base,), {name: guard(what) for name, what in events.items()})()


class Listener:
    """One call. It is `off` once it has stopped, and then does nothing any more."""

    def __init__(self, call: int) -> None:
        self.call, self.pid = call, os.getpid()
        self.off = self.saving = self.listening = self.stepped = False
        self.ranks: Any = None
        self.mark: Mark | None = None
        self.progress = Progress()
        self.reporter = Reporter(self.progress.line, say)

    # -- begin: the process group is there, no step was made

    def meets(self) -> bool:
        """Return True if every rank has a listener."""
        self.ranks = Ranks(self.call)
        if not self.ranks.all_listen():
            self.off = True
            say("not listening: not every rank has a listener")
        return not self.off

    def begin(self, folder: str) -> bool:
        """Return True if saves will last, on every rank."""
        gone = None if ANYWHERE else vanishes(folder)
        if gone:
            say("not listening: %s is %s, which is gone with the pod" % (folder, gone))
        if not os.path.isdir(FOLDER):
            say("not listening: there is no folder %s" % FOLDER)
        able = not gone and os.path.isdir(FOLDER)
        self.off = not self.ranks.same("able", int(able))  # each rank goes to the same meetings, whatever it found
        if not self.off and self.ranks.local == 0:
            for name in ("listening", "request", "done", "failed"):  # of a container that was restarted in place
                remove(shared(name))
        return not self.off

    def resumes(self, found: Mark | None) -> Mark | None:
        """The checkpoint to go on from, the same on every rank."""
        self.mark = agreed(found, self.ranks)
        if self.mark is not None:
            self.progress.known["last_saved_step"] = self.mark.step
            self.progress.known["last_saved_at"] = round(os.path.getmtime(self.mark.file), 1)
            if self.ranks.rank == 0:
                say("resuming at step %d from %s" % (self.mark.step, self.mark.path))
        return self.mark

    # -- each step

    def after_step(self, step: int, last: int) -> bool:
        """Return True if the program has to save now. `last` is 0 if it is unknown."""
        write = self.progress.step(step, last)
        if not self.stepped:
            self.first_step()
        if write and self.ranks.local == 0:
            self.progress.write()
        self.saving = self.ranks.due(step, last or UNBOUNDED, requested())
        return self.saving

    def first_step(self) -> None:
        """Before it there was nothing to save."""
        self.stepped = True
        if self.ranks.local == 0:
            if self.mark is not None:
                Tries(self.mark).forget()
            put("listening")
            self.listening = True
            self.reporter.start()
            atexit.register(quietly, self.close)

    # -- a save

    def saved(self, step: int) -> None:
        self.progress.saved(step)
        if self.ranks.local == 0:
            self.progress.write()

    def could_not(self, error: Exception, leftover: str) -> None:
        """A save failed: training goes on, and the hook need not wait."""
        self.saving = False
        self.ranks.leave()
        if self.ranks.rank == 0 and os.path.isdir(leftover):
            shutil.rmtree(leftover, ignore_errors=True)
        elif self.ranks.rank == 0:
            remove(leftover)
        say("could not save: %r; training goes on" % error)
        self.close()
        put("failed", "%r\n" % error)
        self.progress.leave()

    def finish(self) -> None:
        """Answer the hook and end, because every rank has saved."""
        if self.progress.known["last_saved_step"] != self.progress.known["step"]:
            raise RuntimeError("there is no whole checkpoint of this step")
        if self.ranks.local == 0:
            self.progress.leave()
            put("done")
        wait_for_hook()
        self.ranks.part()
        self.close()
        say("saved step %d, ending with %d" % (self.progress.known["step"], TERMINATED))
        end()

    # -- the end

    def close(self) -> None:
        """Stop listening; a hook that waits is told. A worker that was forked of this process changes nothing."""
        self.off = True
        self.reporter.stop()
        if self.listening and os.getpid() == self.pid:
            self.listening = False
            remove(shared("listening"))
            if requested() and not os.path.exists(shared("done")):
                put("failed", "nothing listens any more\n")

    def stop(self, error: Exception) -> None:
        """A part of the listener failed."""
        quietly(self.close)
        quietly(say, "stopped listening: %r; training goes on" % error)
        if self.ranks is not None:
            self.ranks.leave()

    def ended(self, raised: BaseException | None) -> None:
        """The call returned, or raised. An error before the first step may be the checkpoint's."""
        if isinstance(raised, Exception) and self.mark is not None and not self.stepped and self.ranks.local == 0:
            Tries(self.mark).count(errors=1)
        self.close()
