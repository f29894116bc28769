"""The time that gpu-tiers adds to a create: conditions, the way to the webhook and back, the webhook.

`python bench/where_it_goes.py [--rounds 8]`. The cases of bench/creates.py for one client, dry runs, in turns. The API
server's own metrics tell how long it waited for each webhook and evaluated each condition, those of the replica how
long it had the review, and the kernel what CPU time that took. Milliseconds a create, medians over the rounds.
"""

import argparse
import os
import re
import statistics
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import uvloop
from creates import started
from load import GPU_POD, OTHER_POD, ApiServer, Samples, Tree, burst

from installation.replicas import Replica
from localcluster import ControlPlane

CREATES = 150
CASES: tuple[tuple[str, str, Tree], ...] = (
    ("GPU pod, nothing", "nothing", GPU_POD),
    ("GPU pod, constant answers, ASGI", "asgi-pair", GPU_POD),
    ("GPU pod, gpu-tiers", "direct", GPU_POD),
    ("other pod, nothing", "nothing", OTHER_POD),
    ("other pod, in-tree policies", "policies", OTHER_POD),
    ("other pod, gpu-tiers", "direct", OTHER_POD),
)
SUMS = re.compile(
    r"^(?:apiserver_admission_(?P<part>webhook_admission|match_condition_evaluation)_(?:duration_)?seconds"
    r"|apiserver_(?P<policy>(?:mutating|validating)_admission_policy)_check_duration_seconds"
    r"|gpu_tiers_(?P<ours>review)_seconds)_sum\{(?P<labels>.*)\} (?P<value>\S+)$",
    re.MULTILINE,
)
NAME = re.compile(r'(?:^|,)(?:name|policy|path)="([^"]+)"')
MARKS = {"webhook_admission": "waited for", "match_condition_evaluation": "condition of", "review": "had by replica"}


def sums(text: str) -> Iterator[tuple[str, float]]:
    """Yield the seconds of each part so far, by the metrics of an API server or of a replica."""
    for found in SUMS.finditer(text):
        named = NAME.search(found["labels"])
        kind = found["part"] or found["ours"] or found["policy"]
        yield f"{MARKS.get(kind, kind)} {named[1] if named else ''}", float(found["value"])


def reader(cluster: ControlPlane, replica: Replica) -> Callable[[], dict[str, float]]:
    """Return a function that reads all sums, and the CPU seconds of the replica."""
    hertz = os.sysconf("SC_CLK_TCK")
    page = f"http://127.0.0.1:{replica.address.metrics_port}/metrics"

    def read() -> dict[str, float]:
        found: defaultdict[str, float] = defaultdict(float)
        with urllib.request.urlopen(page) as answer:
            text = answer.read().decode()
        for name, seconds in sums(cluster.kubectl("get", "--raw", "/metrics").stdout + text):
            found[name] += seconds
        with open(f"/proc/{replica.process.popen.pid}/stat") as stat:  # noqa: PTH123 - of the kernel
            user, system = stat.read().rpartition(")")[2].split()[11:13]
        found["CPU of replica"] = (int(user) + int(system)) / hertz
        return found

    return read


async def measure(server: ApiServer, read: Callable[[], dict[str, float]], rounds: int) -> dict[str, dict[str, float]]:
    """Return milliseconds a create by case and part, after a round that doesn't count."""
    taken: dict[str, dict[str, list[float]]] = {case: defaultdict(list) for case, *_ in CASES}
    for number in range(rounds + 1):
        for case, namespace, pod in CASES:
            before, samples = read(), Samples()
            await burst(server, [f"/api/v1/namespaces/{namespace}/pods?dryRun=All"], 1, CREATES, pod, samples)
            after = read()
            if number:
                taken[case]["create, p50"].append(statistics.median(samples.latencies))
                for part, seconds in after.items():
                    taken[case][part].append((seconds - before.get(part, 0.0)) * 1000 / CREATES)
    return {case: {part: statistics.median(values) for part, values in parts.items()} for case, parts in taken.items()}


def main() -> None:
    """Print the table of each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=8, help=f"of {CREATES} creates a case")
    rounds = parser.parse_args().rounds
    with ExitStack() as stack:
        cluster, [replica] = started(1, stack)
        found = uvloop.run(measure(ApiServer(cluster.kubeconfig), reader(cluster, replica), rounds))
    print("| | | ms a create |\n|---|---|---|")
    for case, parts in found.items():
        for part, value in parts.items():
            if round(value, 2):
                print(f"| {case} | {part} | {value:.2f} |")


if __name__ == "__main__":
    main()
