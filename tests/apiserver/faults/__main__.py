"""`make chaos`: storms with random seeds until the time is over; it stops at the first one that overdraws a quota."""

import argparse
import asyncio
import os
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path

from localcluster.versions import DEFAULT_KUBERNETES

from .plan import storm
from .run import Arena, arena, bare_plane

DEVICES = 20


async def chaos(made: Arena, minutes: float, seed: int | None) -> int:
    """Return the exit code: 1 after a storm that went wrong, whose story is printed."""
    until, number = time.monotonic() + 60 * minutes, 0
    while number == 0 or time.monotonic() < until:
        chosen = secrets.randbelow(1_000_000) if seed is None else seed
        plan = storm(f"storm-{number}", chosen, len(made.replicas), devices=DEVICES)
        outcome = await made.run(plan, f"seed {chosen}")
        if not outcome.is_good:
            print(f"{outcome.story()}\nlogs: {saved_logs(made.cluster.folder)}")
            return 1
        print(outcome, flush=True)
        await made.remove(plan)
        number += 1
    return 0


def saved_logs(folder: Path) -> Path:
    """Copy the logs of all processes to where they outlive the control plane."""
    saved = Path(tempfile.mkdtemp(prefix="gpu-tiers-chaos-"))
    for log in folder.glob("*.log"):
        shutil.copy(log, saved)
    return saved


def main() -> int:
    """Read the command line; options that it doesn't know go to `gpu-tiers serve`."""
    parser = argparse.ArgumentParser(prog="python -m tests.apiserver.faults")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, help="the same storm again and again")
    asked, options = parser.parse_known_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        bare_plane(os.environ.get("K8S") or DEFAULT_KUBERNETES, places_pods=True) as cluster,
        arena(cluster, Path(folder), *options, devices=DEVICES) as made,
    ):
        try:
            return asyncio.run(chaos(made, asked.minutes, asked.seed))
        except BaseException:
            print(f"logs: {saved_logs(made.cluster.folder)}", flush=True)
            raise


if __name__ == "__main__":
    sys.exit(main())
