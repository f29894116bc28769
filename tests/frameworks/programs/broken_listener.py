"""Trains a stock program in this process again and again, each time with another function of the listener broken.

Arguments: JSON options of the program, the framework, the listener's text. For each function it prints a JSON line: how
a training ended that was asked to save, and how one ended that had a checkpoint to resume from.
"""

import ast
import contextlib
import io
import json
import os
import shutil
import sys
import threading
import time
import types
from pathlib import Path

SHELLS = {"quietly", "call", "guarded", "event"}
"""What the listener is wrapped in. These have a try around all that they call."""
FOLDER = Path(os.environ["GPU_TIERS_FOLDER"])
FRAMEWORK, TEXT = sys.argv[2], Path(sys.argv[3]).read_text()
ASK_AFTER = 3


def functions(tree):
    """Yield the functions with their full names."""
    found = []

    def walk(node, prefix):
        for each in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(each, (ast.FunctionDef, ast.ClassDef)):
                name = f"{prefix}{each.name}."
            if isinstance(each, ast.FunctionDef) and each.name not in SHELLS:
                found.append((name[:-1], each))
            walk(each, name)

    walk(tree, "")
    return found


def listener(broken):
    """The module, with that function raising an error at once."""
    tree = ast.parse(TEXT)
    for name, node in functions(tree):
        if name == broken:
            node.body = ast.parse(f"raise RuntimeError({name!r})").body
    module = types.ModuleType("gpu_tiers_listen")
    exec(compile(tree, "gpu_tiers_listen.py", "exec"), module.__dict__)
    return module


if FRAMEWORK == "huggingface":
    import stock_huggingface as program
    import transformers.trainer as watched
else:
    import lightning.pytorch.trainer.trainer as watched
    import stock_lightning as program
STOCK = {
    name: watched.Trainer.__dict__[name]
    for name in ("train", "fit", "save_checkpoint")
    if name in watched.Trainer.__dict__
}


class Hook(threading.Thread):
    """Asks once the training has made some steps, and sees the answer."""

    def __init__(self, said):
        super().__init__(daemon=True)
        self.said, self.over, self.asked = said, False, False

    def run(self):
        while not self.over:
            listens = (FOLDER / "listening").exists()
            if not self.asked and listens and self.said.getvalue().count('"step"') >= ASK_AFTER:
                (FOLDER / "request").touch()
                self.asked = True
            if (FOLDER / "done").exists():
                (FOLDER / "request").unlink(missing_ok=True)
            time.sleep(0.001)


def cancel_watchdogs():
    for each in threading.enumerate():
        if isinstance(each, threading.Timer):
            each.cancel()


def trained(broken, ask):
    """Return the last line of a training and its exit status, which is 143 after SIGTERM. None: no listener."""
    for name, function in STOCK.items():
        setattr(watched.Trainer, name, function)
    for each in FOLDER.iterdir():
        each.unlink()
    if broken is not None:
        with contextlib.suppress(RuntimeError):  # as sitecustomize does
            getattr(listener(broken), f"attach_{FRAMEWORK}")(watched)
    said = io.StringIO()
    hook = Hook(said)
    if ask:
        hook.start()
    ended = 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            program.main()
    except SystemExit as end:
        ended = end.code
    except BaseException as error:
        ended = repr(error)
    hook.over = True
    cancel_watchdogs()
    lines = [json.loads(line) for line in said.getvalue().splitlines() if line.startswith('{"')]
    return ended, (lines or [{}])[-1].get("learned"), (lines or [{}])[0].get("resumed")


def main():
    usual = trained(None, ask=False)[1]
    for name in ["none of them", *(name for name, _ in functions(ast.parse(TEXT)))]:
        shutil.rmtree("out", ignore_errors=True)
        begun = time.monotonic()
        ended, learned, _ = trained(name, ask=True)
        row = {"broken": name, "asked": "as without us" if (ended, learned) == (0, usual) else ended}
        if ended == 143:
            _, learned, resumed = trained("none of them", ask=False)
            row["asked"] = "saved" if learned == usual and resumed >= ASK_AFTER else f"resumed at {resumed}, {learned}"
        shutil.rmtree("out", ignore_errors=True)
        trained("none of them", ask=True)
        ended, learned, resumed = trained(name, ask=False)
        row["resumed"] = ("at its step" if resumed else "from the start") if ended == 0 else ended
        row["learned the same"] = learned == usual
        print(json.dumps({**row, "seconds": round(time.monotonic() - begun, 1)}), flush=True)


main()
