"""Spoils what led to a new kind of answer, again and again."""

import asyncio
import json
import re
import traceback
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.builders.world import FakeApi
from tests.fuzz.mutations import spoiled
from tests.fuzz.seeds import seeds
from tests.fuzz.target import judge
from tests.property.test_admission import POLICIES

CORPUS = Path(__file__).parent / "corpus"
"""Reviews that broke a rule once."""
LARGEST = 200_000
"""Bytes of a review that is spoiled further."""


@dataclass(frozen=True)
class Broken:
    """A review that breaks a rule: the error, with the line of ours where it came up."""

    body: bytes
    policy: int
    what: str


class Fuzzer:
    """Tries one review a step; the same seed tries the same ones."""

    def __init__(self, seed: int, loop: asyncio.Runner) -> None:
        self._loop = loop
        self._random = Random(seed)  # noqa: S311 - no secret
        self._pool = [FakeApi().body(tree) for tree in seeds()]
        self.tried = 0
        self.seen: set[tuple[str, ...]] = set()

    def step(self) -> Broken | None:
        """Spoil a review of the pool and ask about it; one that leads to a new kind of answer joins the pool."""
        body = spoiled(self._random, self._random.choice(self._pool))
        policy = self._random.randrange(len(POLICIES))
        self.tried += 1
        try:
            signature = judge(body, policy, self._loop)
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            return Broken(body, policy, _signature_of(error))
        if signature not in self.seen:
            self.seen.add(signature)
            self._keep(body)
        return None

    def _keep(self, body: bytes) -> None:
        try:
            review = json.loads(body)
        except ValueError:
            return
        if len(body) < LARGEST and isinstance(review, dict) and isinstance(review.get("request"), dict):
            self._pool.append(body)


def _signature_of(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    said = re.sub(r"\d+|0x\w+", "#", str(error)[:200])
    return f"{type(error).__name__} in {where.filename.rpartition('/')[2]}:{where.lineno}: {said}"
