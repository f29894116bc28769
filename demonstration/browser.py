"""Takes pictures of a page with a headless Chromium."""

import subprocess
import tempfile
from pathlib import Path

from localcluster import debian

SECONDS = 120


class Browser:
    """Chromium, with a new profile for each picture. Raises PackageError where it can't be had."""

    def __init__(self) -> None:
        debian.have({"chromium": "chromium"}, "the pictures of the page")

    def picture(self, page: str, file: Path, size: tuple[int, int], *, dark: bool = False) -> None:
        """A PNG of what a window of that size shows of a page, in the light or in the dark."""
        with tempfile.TemporaryDirectory(prefix="gpu-tiers-browser-") as folder:
            source = Path(folder) / "page.html"
            source.write_text(page, encoding="utf-8")
            command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
            command += ["--hide-scrollbars", f"--window-size={size[0]},{size[1]}", f"--screenshot={file.resolve()}"]
            command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", source.as_uri()]
            subprocess.run(command, capture_output=True, timeout=SECONDS, check=True)  # noqa: S603 - our own arguments
