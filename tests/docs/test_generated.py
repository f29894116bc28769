"""Generated files are up to date with their source."""

import subprocess
import sys

from .markdown import ROOT


def test_nothing_generated_is_out_of_date() -> None:
    check = [sys.executable, "docs/generate.py", "--check"]
    run = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout + run.stderr) == (0, ""), "run `make generate`"


def test_the_chart_carries_the_presets_and_no_others() -> None:
    source, copy = (
        {file.name for file in (ROOT / folder).glob("*.yaml")}
        for folder in ("webhook/config/presets", "charts/gpu-tiers/presets")
    )
    assert source == copy
