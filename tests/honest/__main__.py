"""`make honest HISTORIES=2000 SEED=200000`: honest users at random, judged by an oracle.

Seeds choose the mode: see random_histories.py. `--seed` may be repeated. `--tell` shows what happens in a history that
fails, and `--shrink` with a part of its signature makes it small.
"""

import argparse
import collections
import json
import os
import sys

from tests.honest import clocks  # the first import: it moves the clocks
from tests.honest.history import run
from tests.honest.limits import is_known
from tests.honest.random_histories import history_of
from tests.honest.report import Report
from tests.honest.shrink import shrunk
from tests.honest.stories import KEEP_TIER, STORIES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.honest", description="Honest users, and an oracle.")
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--seed", type=int, action="append", help="the first one; the others follow (repeatable)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--stories", action="store_true", help="the stories instead; as JSON, each with what fails")
    parser.add_argument("--tell", metavar="STORY", help="what happens in a story, or in the history of --seed: '-'")
    parser.add_argument("--shrink", metavar="SIGNATURE", help="make the history of --seed small")
    asked = parser.parse_args()
    seeds: list[int] = asked.seed or [200_000]
    if asked.stories:
        stories = STORIES.items()
        print(json.dumps({name: wrongs(name, run(story)) for name, story in stories}))
        return 0
    if asked.tell:
        tell(run(STORIES.get(asked.tell) or history_of(seeds[0])))
        return 0
    if asked.shrink:
        history = history_of(seeds[0])
        whole = next(each.signature for each in run(history).failures if asked.shrink in each.signature)
        small = shrunk(history, whole)
        print(json.dumps(small))
        tell(run(small))
        return 0
    return max([search(first, asked.histories, asked.seconds) for first in seeds])


def wrongs(story: str, report: Report) -> list[str]:
    """Return what fails in a story, and which pods run below the tier that they keep in it."""
    lower = [line for line in report.lines if " runs alpha-a/" in line and "gpu-training" not in line]
    return [each.signature for each in report.failures] + (lower if story in KEEP_TIER else [])


def tell(report: Report) -> None:
    print("\n".join(report.lines))
    for each in report.failures:
        print(each.signature, each.at, each.details)


def search(first: int, histories: int, seconds: float) -> int:
    """Run histories, and print each signature with its seeds. Returns 1 where one is no known limit."""
    began = clocks.real_monotonic()
    found = collections.defaultdict[str, list[int]](list)
    known = collections.Counter[str]()
    seed = first
    while seed < first + histories and clocks.real_monotonic() < began + seconds:
        failures = {each.signature: each for each in run(history_of(seed)).failures}
        for signature, failure in failures.items():
            if is_known(failure):
                known[signature] += 1
            else:
                found[signature].append(seed)
                print(f"{seed} {signature}", flush=True)
        seed += 1
    print(f"{seed - first} histories from seed {first} in {clocks.real_monotonic() - began:.0f} s")
    for signature, count in known.most_common():
        print(f"{count:5} {signature} (known)")
    for signature, seeds in sorted(found.items(), key=lambda each: -len(each[1])):
        print(f"{len(seeds):5} {signature}: {seeds[:5]}")
    return 1 if found else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets, and so what a seed does
        os.execve(sys.executable, [*sys.orig_argv], {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606
    sys.exit(main())
