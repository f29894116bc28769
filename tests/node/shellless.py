"""An image with Python and without a shell, as distroless ones are, made of the base image."""

import tarfile
from pathlib import Path

from localcluster.node.archives import archive

SHELL_LESS_IMAGE = "localcluster.test/distroless-python:1"
PROGRAMS = ("bin", "sbin")


def shell_less_image(base: Path, folder: Path) -> Path:
    """Write the archive into the folder: the base's layer, and of all its programs Python alone."""
    layer = folder / "layer.tar"
    with (
        tarfile.open(base) as image,
        tarfile.open(fileobj=image.extractfile("layer.tar")) as files,
        tarfile.open(layer, "w") as target,
    ):
        for entry in (each for each in files if remains(Path(each.name))):
            target.addfile(entry, files.extractfile(entry) if entry.isfile() else None)
    return archive(SHELL_LESS_IMAGE, layer, folder / "image.tar")


def remains(path: Path) -> bool:
    """Return whether a path is no program, or Python."""
    return path.parent.name not in PROGRAMS or path.name.startswith("python3")
