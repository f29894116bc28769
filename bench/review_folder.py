"""The time of `gpu-tiers review -f FOLDER` over 1,000 mixed manifests, the start of the program included.

`python bench/review_folder.py`. The manifests are the golden ones and the examples, each time with another name, other
images and other arguments, so that no two are alike.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ("tests/workloads/golden/*/*.yaml", "examples/*.yaml", "examples/warnings/*.yaml", "examples/refused/*.yaml")
COUNT, ROUNDS = 1000, 5
REVIEW = (str(Path(sys.executable).with_name("gpu-tiers")), "review", "-f")


def seeds() -> list[Any]:
    """The objects that the manifests are made from."""
    files = [file for pattern in SEEDS for file in sorted(ROOT.glob(pattern))]
    return [tree for file in files for tree in yaml.safe_load_all(file.read_text(encoding="utf-8")) if tree]


def varied(tree: object, number: int) -> object:
    """Return a copy of an object whose containers have another image tag and one argument more."""
    if isinstance(tree, list):
        return [varied(each, number) for each in tree]
    if not isinstance(tree, dict):
        return tree
    made = {key: varied(value, number) for key, value in tree.items()}
    if isinstance(made.get("image"), str) and "name" in made:
        made["image"] = f"{made['image'].rpartition(':')[0] or made['image']}:v{number}"
        made["args"] = [*(made.get("args") or []), f"--seed={number}"]
    return made


def manifests() -> Iterator[str]:
    """Yield COUNT manifests under different names, no two alike."""
    for number, seed in enumerate(islice(cycle(seeds()), COUNT)):
        tree: Any = varied(seed, number)
        tree["metadata"] = {**tree["metadata"], "name": f"{tree['metadata'].get('name', 'made')}-{number}"}
        yield yaml.safe_dump(tree, sort_keys=False)


def write(folder: Path) -> int:
    """Write each manifest to a file of its own; return the characters of all."""
    total = 0
    for number, text in enumerate(manifests()):
        total += (folder / f"{number:04}.yaml").write_text(text, encoding="utf-8")
    return total


def seconds(folder: Path, options: tuple[str, ...]) -> tuple[float, float]:
    """Return the seconds of one run of the command by the clock, and those of the CPU."""
    began, cpu = time.perf_counter(), cpu_of_children()
    subprocess.run([*REVIEW, str(folder), *options], stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began, cpu_of_children() - cpu


def cpu_of_children() -> float:
    """Return user and system time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(name: str, folder: Path, *options: str) -> str:
    """A line of the table, the medians of some runs."""
    runs = [seconds(folder, options) for _ in range(ROUNDS)]
    clock, cpu = (statistics.median(each) for each in zip(*runs, strict=True))
    return f"| {name} | {clock:.2f} | {cpu:.2f} |"


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as thousand:
        (Path(one) / "one.yaml").write_text(next(manifests()), encoding="utf-8")
        total = write(Path(thousand))
        print(f"gpu-tiers review -f FOLDER, {COUNT} manifests of {total // 1024} KiB together\n")
        print("| | s | CPU s |\n|---|---|---|")
        print(row("one manifest", Path(one)))
        print(row("1,000 manifests, as text", Path(thousand)))
        print(row("1,000 manifests, as JSON", Path(thousand), "-o", "json"))


if __name__ == "__main__":
    main()
