"""Takes pictures of a page with a headless Chromium."""

import html
import subprocess
import tempfile
from pathlib import Path

from localcluster import debian

SECONDS = 120
BARS = 140
"""By how much a headless window is lower than its picture: a frame is not drawn there."""
NARROWEST = 500
"""Headless Chromium has no window below; a narrower page is shown as on a phone, in a frame of that width."""


class Browser:
    """Chromium, with a new profile for each picture. Raises PackageError where it can't be had."""

    def __init__(self) -> None:
        debian.have({"chromium": "chromium"}, "the pictures of the page")

    def picture(self, page: str, file: Path, size: tuple[int, int], *, dark: bool = False) -> None:
        """Write a PNG of a page in a window of that size, in light or dark, to `file`.

        CalledProcessError if Chromium fails, TimeoutExpired after SECONDS.
        """
        with tempfile.TemporaryDirectory(prefix="gpu-tiers-browser-") as folder:
            source = Path(folder) / "page.html"
            source.write_text(page if size[0] >= NARROWEST else framed(page, size), encoding="utf-8")
            command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
            command += [
                "--hide-scrollbars",
                f"--window-size={max(size[0], NARROWEST)},{size[1]}",
                f"--screenshot={file.resolve()}",
            ]
            command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", source.as_uri()]
            subprocess.run(command, capture_output=True, timeout=SECONDS, check=True)  # noqa: S603 - our own arguments


def framed(page: str, size: tuple[int, int]) -> str:
    """Return a page that shows another in a frame of that width, and BARS lower than that height."""
    style = f"width:{size[0]}px;height:{size[1] - BARS}px;border:0;display:block;margin:auto"
    frame = f'<iframe srcdoc="{html.escape(page)}" style="{style}"></iframe>'
    return f'<!doctype html><html lang="en"><body style="margin:0;background:#8c959f">{frame}</body></html>'
