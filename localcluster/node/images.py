"""Makes the images of the tests: a base with Python, the project's own from its Dockerfile. It pulls no image.

Archives are kept in the cache folder, named after all that went into them, and made again when any of that changes.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from localcluster.binaries import build_lock, cache_folder, say
from localcluster.node.archives import archive
from localcluster.node.packages import NodeError

ROOT = Path(__file__).parents[2]
SUITE = "trixie"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
AUTHORITIES = Path("etc/ssl/certs/ca-certificates.crt")
NEEDLESS = ("var/lib/apt/lists", "var/cache/apt", "usr/share/doc", "usr/share/man", "usr/share/locale")
SOURCES = ("Dockerfile", ".dockerignore", "requirements/runtime.txt", "pyproject.toml", "README.md", "webhook", "certs")

PYTHON_IMAGE = "localcluster.test/python:1"
"""The base as an image of its own: python3, sh and little else."""
LAST_LINES = 15
IN_USE_SECONDS = 3600
OWN_MOUNTS = ("unshare", "--mount")
"""What mounts, leaves nothing mounted however it ends."""


def python_image() -> Path:
    """Return the archive of the base, made by debootstrap; NodeError with its last lines."""
    target = images() / f"python-{SUITE}-{digest_of(' '.join((SUITE, *PACKAGES, *NEEDLESS)).encode())}.tar"
    return kept(target, f"making a base image of Debian {SUITE} (once; about 1 min)", make_base)


def project_image() -> Path:
    """Return the archive of this checkout's image, under the name that the chart gives it; NodeError if it fails."""
    base = python_image()
    target = images() / f"gpu-tiers-{digest_of(base.name.encode(), *contents())}.tar"
    return kept(target, "building the project's image", lambda unfinished: build_project(base, unfinished))


def project_image_name() -> str:
    """Return the name that the chart asks for unless a value says otherwise."""
    chart = yaml.safe_load((ROOT / "charts" / "gpu-tiers" / "Chart.yaml").read_text())
    return f"docker.io/library/gpu-tiers:{chart['appVersion']}"


def make_base(target: Path) -> None:
    """Fill a folder with Debian, tidy it, and pack it."""
    with tempfile.TemporaryDirectory(dir=images(), prefix="debootstrap-") as work:
        root, layer = Path(work) / "root", Path(work) / "layer.tar"
        options = ["--variant=minbase", f"--include={','.join(PACKAGES)}"]
        run([*OWN_MOUNTS, "debootstrap", *options, SUITE, str(root)])
        tidy(root)
        run(["tar", "--numeric-owner", "--one-file-system", f"--directory={root}", f"--file={layer}", "--create", "."])
        archive(PYTHON_IMAGE, layer, target)


def tidy(root: Path) -> None:
    """Leave out what no container reads, and let pip trust whom this machine trusts."""
    for folder in NEEDLESS:
        shutil.rmtree(root / folder, ignore_errors=True)
    machines_own = Path("/") / AUTHORITIES
    if machines_own.exists():
        shutil.copyfile(machines_own, root / AUTHORITIES)


def build_project(base: Path, target: Path) -> None:
    """Run the Dockerfile on that base, without a daemon; the layers stay for the next time."""
    with tempfile.TemporaryDirectory(prefix="buildah-") as runroot:
        buildah = [
            *OWN_MOUNTS,
            "buildah",
            f"--root={images() / 'buildah'}",
            f"--runroot={runroot}",
            "--storage-driver=overlay",
        ]
        options = ["--isolation=chroot", "--layers", f"--build-arg=BASE={PYTHON_IMAGE}", "--pull-never"]
        run([*buildah, "pull", f"docker-archive:{base}"])
        run([*buildah, "bud", *options, f"--tag={project_image_name()}", str(ROOT)])
        run([*buildah, "push", project_image_name(), f"docker-archive:{target}:{project_image_name()}"])


def run(command: list[str]) -> None:
    """Run one step; NodeError shows the last lines of a failure."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-LAST_LINES:])
        raise NodeError(f"{' '.join(command)} failed:\n{tail}")


def kept(target: Path, what: str, make: Callable[[Path], None]) -> Path:
    """Return it, made beside its place and moved there when it is whole; drop the ones that it replaces."""
    unfinished = target.with_suffix(f".{os.getpid()}.tmp")
    with build_lock():
        if not target.exists():
            say(what)
            try:
                make(unfinished)
                unfinished.replace(target)
            finally:
                unfinished.unlink(missing_ok=True)
        target.touch()
        drop_others(target)
    return target


def drop_others(target: Path) -> None:
    """Remove its older namesakes, but for those that another checkout asked for a moment ago and may be reading."""
    for each in target.parent.glob(f"{target.name.rpartition('-')[0]}-*.tar"):
        if each.stat().st_mtime < target.stat().st_mtime - IN_USE_SECONDS:
            each.unlink()


def images() -> Path:
    """Return the folder of the cache where they are kept."""
    folder = cache_folder() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def contents() -> Iterator[bytes]:
    """Return the name and the content of each file that the project's image is made of."""
    for source in (ROOT / name for name in SOURCES):
        files = sorted(source.rglob("*")) if source.is_dir() else [source]
        for file in (each for each in files if each.is_file() and each.suffix != ".pyc"):
            yield str(file.relative_to(ROOT)).encode()
            yield file.read_bytes()


def digest_of(*parts: bytes) -> str:
    """Return a short digest of them, in their order."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
