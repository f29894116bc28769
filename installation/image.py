"""The project's own image, built from its Dockerfile for a real node that pulls none."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from installation.helm import CHART, ROOT
from localcluster.node.images import IMAGE_MINUTES, built_image, image_archive
from localcluster.parts import Part

SOURCES = (
    "Dockerfile",
    ".dockerignore",
    "requirements/runtime.txt",
    "pyproject.toml",
    "README.md",
    "webhook",
    "certs",
    "listener",
)


def project_image(progress: str = "") -> Path:
    """Return the archive of this checkout's image, under the name that the chart gives it; NodeError if it fails."""
    return built_image(project_image_name(), ROOT, contents(), progress)


def project_image_part() -> Part:
    """Return the image as a part of a cluster."""
    return Part(IMAGE_MINUTES, image_archive(project_image_name(), contents()).exists, project_image)


def project_image_name() -> str:
    """Return the name that the chart asks for unless a value says otherwise."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    return f"docker.io/library/gpu-tiers:{chart['appVersion']}"


def contents() -> Iterator[bytes]:
    """Yield the name and then the content of each file that the image is made of."""
    for source in (ROOT / name for name in SOURCES):
        files = sorted(source.rglob("*")) if source.is_dir() else [source]
        for file in (each for each in files if each.is_file() and each.suffix != ".pyc"):
            yield str(file.relative_to(ROOT)).encode()
            yield file.read_bytes()
