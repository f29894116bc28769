"""Makes sdist and wheel of a copy of the project, whose README links to where the project is published."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from website.links import with_links

SHIPPED = ("pyproject.toml", "LICENSE", "README.md", "webhook", "certs", "listener")
_BUILD = "from setuptools import build_meta as b; b.build_wheel({0!r}); b.build_sdist({0!r})"


def archives(root: Path, target: Path) -> None:
    """Build both into a folder."""
    copy = root / "build" / "shipped"
    shutil.rmtree(copy, ignore_errors=True)
    for name in SHIPPED:
        if (root / name).is_dir():
            shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            copy.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, copy / name)
    readme = copy / "README.md"
    readme.write_text(standing_alone(readme.read_text(encoding="utf-8"), published(root)), encoding="utf-8")
    target.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", _BUILD.format(str(target.resolve()))]
    subprocess.run(command, cwd=copy, check=True, stdout=subprocess.PIPE)  # noqa: S603 - our own settings


def published(root: Path) -> str:
    """Where the files of this version are read, from pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['urls']['Repository']}/blob/v{project['version']}/"


def standing_alone(readme: str, base: str) -> str:
    """The README with absolute links; a picture is asked for as it is, not as a page about it."""
    return with_links(readme, lambda link: base + link + ("?raw=true" if link.endswith((".svg", ".png")) else ""))
