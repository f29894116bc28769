"""gpu-tiers: when the program imports a trainer of Hugging Face or Lightning, or a launcher, attach the listener to it.

Python runs this file at its start because it lies first on PYTHONPATH. It imports little before that, and runs the
sitecustomize that it hides. GPU_TIERS_LISTEN=off leaves the program alone.
"""

import sys

TYPE_CHECKING = False  # typing's own would cost its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_ATTACH = {
    "transformers.trainer": "attach_huggingface",
    "lightning.pytorch.trainer.trainer": "attach_lightning",
    "pytorch_lightning.trainer.trainer": "attach_lightning",
    "torch.distributed.launcher.api": "attach_launcher",
    "accelerate.commands.launch": "attach_launcher",
}
"""Module of the program: function of gpu_tiers_listen that is called once that module has run."""


def _say(what: str) -> None:
    try:
        sys.stderr.write("gpu-tiers listen: %s\n" % what)
    except Exception:
        pass


class _Finder:
    """First on sys.meta_path. The others find; this one attaches to the modules above when they have run."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> "ModuleSpec | None":
        if _ATTACH.get(name) is None:
            return None
        attach = _ATTACH.pop(name)  # once: the look-up below asks this finder again
        try:
            from importlib.util import find_spec

            spec = find_spec(name)
            if spec is not None and spec.loader is not None:
                _run_then(spec.loader, lambda module: _attach(attach, module))
        except Exception as error:
            _say("%s is not watched: %r" % (name, error))
            return None
        return spec


def _run_then(loader: "Loader", then: "Callable[[ModuleType], None]") -> None:
    """Have this loader call `then` after its next exec_module. What the module raises is the program's own."""
    run = loader.exec_module

    def exec_module(module: "ModuleType") -> None:
        loader.__dict__.pop("exec_module", None)
        run(module)
        then(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]


def _attach(attach: str, module: "ModuleType") -> None:
    try:
        import gpu_tiers_listen

        getattr(gpu_tiers_listen, attach)(module)
    except Exception as error:
        _say("not attached to %s: %r" % (module.__name__, error))


def _run_hidden() -> None:
    """Run the sitecustomize that Python would have found without this one. Python reports what it raises."""
    import os
    from importlib.machinery import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [each for each in sys.path if os.path.abspath(each or ".") != here])
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec  # here, as it takes milliseconds

    ours = sys.modules.get("sitecustomize")
    theirs = sys.modules["sitecustomize"] = module_from_spec(spec)
    try:
        spec.loader.exec_module(theirs)
    except BaseException:
        if ours is not None:
            sys.modules["sitecustomize"] = ours
        raise


def _start() -> None:
    import os

    if sys.version_info >= (3, 9) and os.environ.get("GPU_TIERS_LISTEN", "on") != "off":
        sys.meta_path.insert(0, _Finder())


try:
    _start()
except Exception as _error:
    _say("off: %r" % (_error,))
_run_hidden()
