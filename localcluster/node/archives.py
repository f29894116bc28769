"""Packs files into an image archive, the form that containerd and buildah read.

The form is that of `docker save`: manifest.json, a configuration (OCI image specification) and one layer.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The names of processors in images, if they differ from those of `platform`."""
SHELL_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def archive(name: str, layer: Path, target: Path, entrypoint: Sequence[str] = ()) -> Path:
    """Write the image `name` of one uncompressed layer; return the target."""
    configuration = json.dumps(
        {
            "architecture": architecture(),
            "os": "linux",
            "config": {"Env": [SHELL_PATH], "Entrypoint": list(entrypoint)},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(layer)}"]},
            "history": [{"created_by": "localcluster"}],  # one for each layer: buildah counts them
        }
    ).encode()
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(target, "w") as image:
        add_bytes(image, "manifest.json", json.dumps(manifest).encode())
        add_bytes(image, "config.json", configuration)
        image.add(layer, "layer.tar")
    return target


def architecture() -> str:
    """Return the name of this machine's processor in images."""
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)


def layer_of_program(program: Path, target: Path) -> Path:
    """Write a layer that holds one static program as /<name>, and nothing else: no shell."""
    with tarfile.open(target, "w") as layer:
        layer.add(program, program.name, filter=as_root)
    return target


def as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Make an entry root's, and executable."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755
    return entry


def add_bytes(image: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file that exists in memory only."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    image.addfile(entry, io.BytesIO(content))


def digest(path: Path) -> str:
    """Return the file's SHA-256 in hexadecimal."""
    with path.open("rb") as handle:
        return _digest(handle)


def _digest(handle: IO[bytes]) -> str:
    return hashlib.file_digest(handle, "sha256").hexdigest()  # type: ignore[arg-type]
