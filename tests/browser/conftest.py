"""A headless Chromium, and axe-core, which looks at a page as somebody with a screen reader would."""

import base64
import hashlib
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localcluster import debian
from localcluster.binaries import cache_folder
from localcluster.for_tests import missing

AXE = "axe-core@4.14.1"
INTEGRITY = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
"""The sha512 of its tarball, as the registry signs it."""
TELL = """
window.addEventListener("load", () => axe.run().then(found => {
  const told = found.violations.map(each => [each.id, each.help, each.nodes.map(node => node.html)]);
  document.documentElement.innerHTML = "<body><pre id=told></pre></body>";
  document.getElementById("told").textContent = "TOLD" + JSON.stringify(told) + "DLOT";
}));
"""

Look = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's program, installed by apt where it can be."""
    try:
        debian.have({"chromium": "chromium"}, "the page's tests")
    except debian.PackageError as error:
        missing(f"no browser: {error}")
    return "chromium"


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, of npm's registry; kept in the cache."""
    cached = cache_folder() / f"{AXE}.js"
    if not cached.exists():
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.write_text(_fetched(cached.parent))
    return cached.read_text()


def _fetched(folder: Path) -> str:
    try:
        debian.have({"npm": "npm"}, "the page's tests")
        packed = subprocess.run(
            ["npm", "pack", AXE, "--json", f"--pack-destination={folder}"], capture_output=True, text=True, check=True
        )
    except (debian.PackageError, subprocess.CalledProcessError) as error:
        missing(f"no axe-core: {error}")
    file = folder / json.loads(packed.stdout)[0]["filename"]
    content = file.read_bytes()
    assert base64.b64encode(hashlib.sha512(content).digest()).decode() == INTEGRITY
    with tarfile.open(file) as archive:
        source = archive.extractfile("package/axe.min.js")
        assert source
        text = source.read().decode()
    file.unlink()
    return text


@pytest.fixture
def look(chromium: str, axe: str, tmp_path: Path) -> Look:
    """Opens a page in a window of a size, light or dark, and returns what axe-core finds wrong with it."""

    def found(page: str, *, width: int = 1200, dark: bool = False) -> list[Any]:
        file = tmp_path / "page.html"
        file.write_text(page.replace("</head>", f"<script>{axe}</script><script>{TELL}</script></head>"))
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        command += [f"--window-size={width},1400", "--virtual-time-budget=20000", "--dump-dom"]
        command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", file.as_uri()]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
        assert "TOLD" in shown, shown[-2000:]
        findings: list[Any] = json.loads(_unescaped(shown.partition("TOLD")[2].partition("DLOT")[0]))
        return findings

    return found


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
