"""`make fuzz MINUTES=10`: reviews spoiled at random until something gives way, or the time is over."""

import argparse
import asyncio
import hashlib
import sys
import time

from tests.fuzz.fuzzer import CORPUS, Fuzzer


def main() -> int:
    """Return 1 where a review was found that breaks a rule; it stays in the corpus, for the tests to try again."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Spoil reviews at random.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    with asyncio.Runner() as loop:
        found = search(Fuzzer(asked.seed, loop), time.monotonic() + asked.minutes * 60)
    return 1 if found else 0


def search(fuzzer: Fuzzer, deadline: float) -> set[str]:
    """Try until then. Returns what was found, each kind once; its first review is in the corpus."""
    found: set[str] = set()
    while time.monotonic() < deadline:
        broken = fuzzer.step()
        if broken is not None and broken.what not in found:
            file = CORPUS / f"{hashlib.sha256(broken.body).hexdigest()[:12]}.json"
            file.write_bytes(broken.body)
            found.add(broken.what)
            print(f"{file.name}, policy {broken.policy}: {broken.what}", flush=True)
    print(f"{fuzzer.tried} reviews, {len(fuzzer.seen)} kinds of answers, {len(found)} found", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
