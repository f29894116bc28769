"""Reads the YAML files next to the code, which are its tables."""

import os
import sys
from contextlib import suppress
from importlib.util import cache_from_source, source_hash
from pathlib import Path
from typing import Any

import msgspec
import yaml


def data_file(module: str, name: str) -> Any:
    """Return the content of a YAML file next to or below an imported module.

    The parsed content is cached next to the module's bytecode, because parsing all tables takes 25 ms, a tenth of a
    short command. If the folder is read-only, or Python writes no bytecode, each process parses the file.
    """
    code: Any = sys.modules[module]
    file = Path(code.__file__).parent / name
    text = code.__loader__.get_data(str(file))  # reads from a zip archive too
    cache, stamp = Path(cache_from_source(f"{file}.py")).with_suffix(".msgpack"), source_hash(text)
    with suppress(OSError, msgspec.DecodeError):
        cached = cache.read_bytes()
        if cached.startswith(stamp):
            return msgspec.msgpack.decode(cached[len(stamp) :])
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times faster
    content = yaml.load(text, loader)  # noqa: S506 - both loaders are safe
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            cache.parent.mkdir(exist_ok=True)
            draft = cache.with_suffix(f".{os.getpid()}")  # another process may read the file meanwhile
            draft.write_bytes(stamp + msgspec.msgpack.encode(content))
            draft.replace(cache)
    return content
