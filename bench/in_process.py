"""The time of one review without a socket, next to the obvious way of writing it in the same run.

`python bench/in_process.py`. The ratio counts, not the microseconds: it holds on another machine.
"""

import asyncio
import base64
import copy
import json
import statistics
import time
from collections.abc import Awaitable, Callable

import jsonpatch
from reviews import review

from webhook.admission.review import decode
from webhook.admission.webhook import Webhooks
from webhook.cluster.offline import offline_cluster
from webhook.config.load import parse
from webhook.ledger.memory import MemoryLedger

POLICY = "{apiVersion: config.gpu-tiers.dev/v1alpha1, kind: TierPolicy, mode: Enforce}"
TENANT = {
    "apiVersion": "gpu-tiers.dev/v1alpha1",
    "kind": "TenantQuota",
    "metadata": {"name": "alpha"},
    "spec": {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team-alpha"}},
        "maxTier": "gpu-training",
        "quotas": [{"gpus": "1000"}, {"tier": "gpu-interactive", "gpus": "1000"}],
    },
}
ROUNDS, REPEATS = 9, 300
CACHES = bytearray(64 << 20)
"""More than a CPU core's own caches hold. In a cluster the API server's work lies between two reviews."""


async def the_obvious_way(body: bytes) -> bytes:
    """Decode all, copy, change, diff, encode all."""
    tree = json.loads(body)
    before = tree["request"]["object"]
    after = copy.deepcopy(before)
    after["spec"] |= {"priorityClassName": "gpu-interactive", "priority": 200, "preemptionPolicy": "Never"}
    after["metadata"]["labels"]["gpu-tiers.dev/tier"] = "gpu-interactive"
    patch = jsonpatch.make_patch(before, after).to_string()
    response = {"uid": tree["request"]["uid"], "allowed": True, "patchType": "JSONPatch"}
    response["patch"] = base64.b64encode(patch.encode()).decode()
    return json.dumps({**{key: tree[key] for key in ("apiVersion", "kind")}, "response": response}).encode()


def ours() -> dict[str, Callable[[bytes], Awaitable[bytes]]]:
    """The two webhooks as the server calls them."""
    policy = parse(POLICY)
    cluster = offline_cluster(policy.tiers, [TENANT])
    webhooks = Webhooks(cluster, MemoryLedger(), lambda: policy, lambda *_: None)

    async def mutate(body: bytes) -> bytes:
        return await webhooks.mutate(decode(body))

    async def validate(body: bytes) -> bytes:
        return await webhooks.validate(decode(body))

    return {"mutate": mutate, "validate": validate}


async def mutated(body: bytes) -> bytes:
    """The review with which the API server asks the validating webhook: of the pod as the mutating one left it."""
    tree, answer = json.loads(body), json.loads(await ours()["mutate"](body))
    patch = json.loads(base64.b64decode(answer["response"]["patch"]))
    tree["request"]["object"] = jsonpatch.apply_patch(tree["request"]["object"], patch)
    return json.dumps(tree).encode()


async def microseconds(answer: Callable[[bytes], Awaitable[bytes]], body: bytes) -> float:
    """The median over rounds of the mean of one round's calls."""
    means = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(REPEATS):
            await answer(body)
        means.append((time.perf_counter() - began) / REPEATS * 1e6)
    return statistics.median(means)


async def microseconds_cold(answer: Callable[[bytes], Awaitable[bytes]], body: bytes) -> float:
    """The median of calls before each of which the caches of the CPU were filled with something else."""
    taken = []
    for _ in range(REPEATS):
        CACHES[::64] = bytes(len(CACHES) // 64)
        began = time.perf_counter()
        await answer(body)
        taken.append((time.perf_counter() - began) * 1e6)
    return statistics.median(taken)


async def main() -> None:
    """Print the table."""
    body = review()
    cases = {
        "the obvious way": (the_obvious_way, body),
        "gpu-tiers, mutate, 8 GPUs": (ours()["mutate"], body),
        "gpu-tiers, validate and book, 8 GPUs": (ours()["validate"], await mutated(body)),
        "gpu-tiers, mutate, no GPU": (ours()["mutate"], review(0)),
    }
    rows = {name: (await microseconds(*case), await microseconds_cold(*case)) for name, case in cases.items()}
    baseline, _ = rows["the obvious way"]
    print(f"one review of {len(body)} bytes, in one process, without a socket\n")
    print("| | us | of the obvious way | us, caches cold |\n|---|---|---|---|")
    for name, (hot, cold) in rows.items():
        print(f"| {name} | {hot:.0f} | {hot / baseline:.0%} | {cold:.0f} |")


if __name__ == "__main__":
    asyncio.run(main())
