"""Makes images for a real node: a base with Python, and others from a Dockerfile on top of it. None is pulled.

The cache folder has the archives. Their names are digests of all inputs, so a changed input makes a new one.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from localcluster.binaries import cache_folder, only_one, say
from localcluster.node.archives import archive
from localcluster.node.packages import NodeError

SUITE = "trixie"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
AUTHORITIES = Path("etc/ssl/certs/ca-certificates.crt")
NEEDLESS = ("var/lib/apt/lists", "var/cache/apt", "usr/share/doc", "usr/share/man", "usr/share/locale")

PYTHON_IMAGE = "localcluster.test/python:1"
"""The base as an image of its own: python3, sh and little else."""
BASE_MINUTES = 1.0
IMAGE_MINUTES = 1.0
LAST_LINES = 15
IN_USE_SECONDS = 3600
OWN_MOUNTS = ("unshare", "--mount")
"""The prefix of commands that mount something: nothing stays mounted after their end."""


def python_image(progress: str = "") -> Path:
    """Return the archive of the base, made by debootstrap if missing; NodeError with the last lines of a failure."""
    what = f"{progress}making a base image of Debian {SUITE} (once; about {BASE_MINUTES:g} min)"
    return stored(base_archive(), what, make_base)


def built_image(name: str, folder: Path, contents: Iterable[bytes], progress: str = "") -> Path:
    """Return the archive of a folder's image, built by its Dockerfile on the base; NodeError if that fails."""
    base, target = python_image(), image_archive(name, contents)
    what = f"{progress}building the image {name} (about {IMAGE_MINUTES:g} min)"
    return stored(target, what, lambda unfinished: build(name, folder, base, unfinished))


def base_archive() -> Path:
    """Return the file of the base."""
    return images() / f"python-{SUITE}-{digest_of(' '.join((SUITE, *PACKAGES, *NEEDLESS)).encode())}.tar"


def image_archive(name: str, contents: Iterable[bytes]) -> Path:
    """Return the file of an image. `contents` is all that goes into it, and other contents give another file."""
    short = name.rpartition("/")[2].partition(":")[0]
    return images() / f"{short}-{digest_of(base_archive().name.encode(), *contents)}.tar"


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
    """Delete files that no container reads, and give pip this machine's CAs."""
    for folder in NEEDLESS:
        shutil.rmtree(root / folder, ignore_errors=True)
    machines_own = Path("/") / AUTHORITIES
    if machines_own.exists():
        shutil.copyfile(machines_own, root / AUTHORITIES)


def build(name: str, folder: Path, base: Path, target: Path) -> None:
    """Run the folder's Dockerfile on that base, without a daemon; the layers stay for the next time."""
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
        run([*buildah, "bud", *options, f"--tag={name}", str(folder)])
        run([*buildah, "push", name, f"docker-archive:{target}:{name}"])


def run(command: list[str]) -> None:
    """Run one step; NodeError shows the last lines of a failure."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-LAST_LINES:])
        raise NodeError(f"{' '.join(command)} failed:\n{tail}")


def stored(target: Path, what: str, make: Callable[[Path], None]) -> Path:
    """Return `target`, and make it if it is missing: under another name, and renamed when it is whole.

    `what` is printed before. Older archives of the same name are deleted.
    """
    unfinished = target.with_suffix(f".{os.getpid()}.tmp")
    with only_one("images"):
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
    """Delete archives of the same name that were used IN_USE_SECONDS before `target` or earlier."""
    for each in target.parent.glob(f"{target.name.rpartition('-')[0]}-*.tar"):
        if each.stat().st_mtime < target.stat().st_mtime - IN_USE_SECONDS:
            each.unlink()


def images() -> Path:
    """Return the folder of the archives in the cache."""
    folder = cache_folder() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def digest_of(*parts: bytes) -> str:
    """Return 16 hexadecimal digits that depend on the parts and their order."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
