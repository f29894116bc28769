"""Builds the site with zensical, which ends with an error at a link or an anchor that leads nowhere."""

import shutil
import subprocess
import sys
from pathlib import Path

from website.layout import ROOT, lay_out

SETTINGS = "zensical.toml"
PAGES, SITE = "build/pages", "build/site"
"""Where the settings say that the pages lie, and where the site is put."""


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    """Lay the pages out below a folder and build the site there; return zensical's output and exit code."""
    settings = folder / SETTINGS
    if folder != ROOT:
        settings.write_bytes((ROOT / SETTINGS).read_bytes())
    shutil.rmtree(folder / SITE, ignore_errors=True)
    lay_out(folder / PAGES)
    return zensical(settings)


def zensical(settings: Path) -> subprocess.CompletedProcess[str]:
    """Build the site by a settings file, where a warning is an error; return zensical's output and exit code."""
    program = str(Path(sys.executable).with_name("zensical"))
    return subprocess.run(  # noqa: S603 - our own tool and settings
        [program, "build", "--strict", "--clean", f"--config-file={settings}"],
        cwd=settings.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
