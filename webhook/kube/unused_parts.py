"""Leaves out what the client libraries make ready as they are imported and nothing here uses: most of their start."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

_PARTS = ("dynamic", "informer", "leaderelection", "stream", "utils", "watch")
_UNUSED = {"kubernetes.config", *(f"kubernetes.{aio}{part}" for aio in ("", "aio.") for part in _PARTS)}
"""Whoever uses one of them all the same has it read then; `leader_election` does so with one."""

_CAS = "SSL_CERT_FILE"
"""Tells OpenSSL which file has the CAs that it trusts by itself."""


class _Unused:
    """Finds these parts as every other module, and leaves them unread until somebody asks for something in them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path, target) if name in _UNUSED else None
        if found is not None and isinstance(found.loader, Loader):
            found.loader = LazyLoader(found.loader)
        return found


@contextmanager
def unused_parts_left() -> Iterator[None]:
    """For the first import of the Kubernetes library, whose packages import all of their parts, and of aiohttp.

    That reads all CAs of this machine, twice, for connections without a TLS context of their own; ours have one.
    """
    sys.meta_path.insert(0, _Unused)
    named = os.environ.get(_CAS)
    os.environ[_CAS] = os.devnull
    try:
        yield
    finally:
        sys.meta_path.remove(_Unused)
        os.environ.pop(_CAS)
        if named is not None:
            os.environ[_CAS] = named
