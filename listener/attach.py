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
from listener.mark import Mark, discard, marks_of
from listener.progress import Progress
from listener.protocol import ANYWHERE, FOLDER, SAVE_SECONDS, TERMINATED, put, quietly, remove, requested, say, shared
from listener.report import Reporter, Wishes
from listener.resume import Tries, agreed
from listener.volatile import vanishes

UNBOUNDED = 1 << 39
"""The last step of a training that has none."""
_calls = [0]
_wishes = Wishes()
"""Those of the process, because an outcome may be reported in the next call."""


def next_call() -> int:
    _calls[0] += 1
    return _calls[0]


def version(module: Any) -> tuple[int, int]:
    """Return (5, 23) for version 5.23.0.dev0; (0, 0) if it is unknown."""
    numbers = re.findall("[0-9]+", str(getattr(module, "__version__", "")))
    return (int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else (0, 0)


def guarded(listener: Listener, what: Callable[..., Any], *args: Any) -> Any:
    """Call a part of the listener unless it is off; if it fails, the listener stops and the training goes on."""
    if listener.off or os.getpid() != listener.pid:
        return None
    try:
        return what(*args)
    except Exception as error:
        quietly(listener.stop, error)
        return None


def callback(base: type, listener: Listener, events: Mapping[str, Callable[..., Any]]) -> Any:
    """Make a callback that calls `events`, guarded. A class written here would import the framework."""

    def guard(what: Callable[..., Any]) -> Callable[..., Any]:
        def event(_self: Any, *args: Any, **_: Any) -> None:
            guarded(listener, what, *args)

        return event

    return type("GpuTiersListener", (base,), {name: guard(what) for name, what in events.items()})()


class Listener:
    """One call. It is `off` once it has stopped, and does nothing any more. Unless `able` to save, it only reports."""

    def __init__(self, call: int) -> None:
        self.call, self.pid = call, os.getpid()
        self.off = self.able = self.listening = self.stepped = False
        self.saving: dict[str, Any] | None = None
        """The save that all ranks have agreed on: `{"ends": True}` or a wish."""
        self.ranks: Any = None
        self.mark: Mark | None = None
        self.progress, self.wishes = Progress(), _wishes
        self.reporter = Reporter(self.progress.line, say, self.wishes)
        self.folder = ""
        """The folder of its marks."""

    def notes(self) -> list[str]:
        """Return paths at which a mark may be."""
        raise NotImplementedError

    # -- begin: the process group is there, no step was made

    def begins(self, folder: str) -> bool:
        """Return True if every rank has a listener and a `folder` that outlasts the pod."""
        self.folder, self.ranks, self.wishes.why_not = folder, Ranks(self.call, self.judge), ""
        self.progress.known["pods"] = self.ranks.pods
        if not self.ranks.all_listen():
            return self.unable("not every rank has a listener")
        gone = None if ANYWHERE else vanishes(folder)
        why = "%s is %s, which is gone with the pod" % (folder, gone) if gone else ""
        if not os.path.isdir(FOLDER):
            why = "there is no folder %s" % FOLDER
        able = self.ranks.same("able", int(not why))  # each rank goes to the same meetings, whatever it found
        if not able:
            return self.unable(why or "another rank can't save")
        self.able = True
        if self.ranks.local == 0:
            for name in ("listening", "request", "done", "failed"):  # of a container that was restarted in place
                remove(shared(name))
        return True

    def unable(self, why: str) -> bool:
        say("not listening: %s" % why)
        self.wishes.give_up(why)
        return False

    def resumes(self, found: Mark | None) -> Mark | None:
        """Return the checkpoint to resume from, of the same step on every rank, or None."""
        self.mark = agreed(found, self.ranks)
        if self.mark is not None:
            self.progress.known["last_saved_step"] = self.mark.step
            self.progress.known["last_saved_at"] = round(os.path.getmtime(self.mark.file), 1)
            if self.ranks.rank == 0:
                say("resuming at step %d from %s" % (self.mark.step, self.mark.path))
        return self.mark

    # -- each step

    def after_step(self, step: int, last: int) -> bool:
        """Record a step; return True if the program has to save now. `last` is 0 if it is unknown."""
        write = self.progress.step(step, last)
        if not self.stepped:
            self.first_step()
        if not self.able:
            return False
        if write and self.ranks.local == 0:
            self.progress.write()
        if self.saving is None:  # else the trainer had something else in mind than to save after the last step
            wish = self.wishes.due(step) if self.wishes.waiting is not None else None
            asked = None if wish is None else {"id": wish.id, "step": wish.step}
            self.saving = self.ranks.due(step, last or UNBOUNDED, requested(), asked)
            if self.saving is not None and "outcome" in self.saving:
                self.ranks.next_round()
                self.finished(**self.saving)
                self.saving = None
            elif self.saving is not None and not self.ends():
                self.wishes.begin(self.saving["id"])
        return self.saving is not None

    def first_step(self) -> None:
        """Begin to listen and report: before it there was nothing to save."""
        self.stepped = True
        if self.ranks.local == 0:
            if self.mark is not None:
                Tries(self.mark).forget()
            if self.able:
                put("listening")
                self.listening = True
            self.reporter.start()
            atexit.register(quietly, self.close)

    def judge(self, wish: dict[str, Any]) -> dict[str, Any]:
        """Return the outcome of a wish that needs no save or has no room for one, else {}."""
        saved = self.progress.known["last_saved_step"]
        if saved is not None and saved >= wish["step"]:
            return {"outcome": "saved", "step": saved}
        known = next((each.files for each in marks_of(self.notes(), self.call) if isinstance(each.files, dict)), {})
        needed, free = sum(known.values()), shutil.disk_usage(self.folder).free if known else 0
        if needed <= free:
            return {}
        return {"outcome": "failed", "why": "the last checkpoint has %d bytes, and %d are free" % (needed, free)}

    def finished(self, **wish: Any) -> None:
        """Finish a wish without a save: it is met, or it failed."""
        if wish["outcome"] == "saved":
            self.wishes.finish(wish["id"], "saved", step=wish["step"])
        else:
            self.wishes.finish(wish["id"], "failed", why=wish["why"])
            say("not saved: %s; training goes on" % wish["why"])

    # -- a save

    def ends(self) -> bool:
        return self.saving is not None and "ends" in self.saving

    def saved(self, step: int, wish: str = "") -> None:
        """Record a whole checkpoint, and finish the wishes that it meets."""
        self.progress.saved(step)
        if wish:
            self.wishes.finish(wish, "saved", step=step)
        self.wishes.saved(step)
        if self.ranks.local == 0:
            self.progress.write()

    def save(self, step: int, write: Callable[[], None], commit: Callable[[], None], leftover: str) -> None:
        """Write on all ranks, then commit; if a rank failed, delete `leftover`. The caller may then `finish`."""
        try:
            write()
            why = "" if self.ranks.meet("written", SAVE_SECONDS) else "not every rank has written"
            if self.off:  # a part of it failed amid the save, whose checkpoint may lack something
                why = "it stopped listening"
            if not why:
                commit()
        except Exception as error:
            why = repr(error)
        self.concluded(step, why, leftover)

    def concluded(self, step: int, why: str, leftover: str = "") -> None:
        """Agree how the save went (`why` this rank failed), and answer the wish, or the hook if it failed."""
        saving, why = self.saving or {}, self.ranks.all_saved(why)
        if why and leftover and self.ranks.local == 0:
            discard(leftover)
        if why or not self.ends():
            self.saving = None
        if not why:
            self.saved(step, saving.get("id", ""))
        elif "ends" not in saving:
            self.finished(id=saving["id"], outcome="failed", why=why)
        else:  # the hook need not wait
            say("could not save: %s; training goes on" % why)
            self.close()
            put("failed", "%s\n" % why)
            self.progress.leave()

    def finish(self) -> None:
        """Answer the hook and end, because every rank has saved this step; else RuntimeError."""
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
        """Stop listening and reporting; a hook that waits finds `failed`. A forked worker leaves files alone."""
        if not self.off and os.getpid() == self.pid:
            quietly(self.wishes.give_up, "nothing listens any more")
        self.off = True
        self.reporter.stop()
        if self.listening and os.getpid() == self.pid:
            self.listening = False
            remove(shared("listening"))
            if requested() and not os.path.exists(shared("done")):
                put("failed", "nothing listens any more\n")

    def stop(self, error: Exception) -> None:
        """Stop on all ranks because a part of the listener failed."""
        quietly(self.wishes.give_up, "stopped listening: %r" % error)
        quietly(self.close)
        quietly(say, "stopped listening: %r; training goes on" % error)
        if self.ranks is not None:
            self.ranks.leave()

    def ended(self, raised: BaseException | None) -> None:
        """Close. An error before the first step counts against the resumed checkpoint."""
        if isinstance(raised, Exception) and self.mark is not None and not self.stepped and self.ranks.local == 0:
            Tries(self.mark).count(errors=1)
        self.close()
