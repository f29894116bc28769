"""A few hundred spoiled reviews, and all that broke a rule once; `make fuzz MINUTES=…` tries more."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.fuzzer import CORPUS, Fuzzer
from tests.fuzz.target import judge
from tests.property.test_admission import POLICIES
from webhook.admission.webhook import Webhooks

BUDGET = 600
SEED = 20


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def test_spoiled_reviews_break_no_rule(loop: asyncio.Runner) -> None:
    fuzzer = Fuzzer(SEED, loop)
    assert [broken.what for _ in range(BUDGET) if (broken := fuzzer.step())] == []
    assert len(fuzzer.seen) > BUDGET / 10, "most reviews are not even read"


@pytest.mark.parametrize("file", sorted(CORPUS.iterdir()), ids=lambda file: file.stem)
def test_what_broke_a_rule_once_does_so_no_more(file: Path, loop: asyncio.Runner) -> None:
    for policy in range(len(POLICIES)):
        judge(file.read_bytes(), policy, loop)


def test_a_fault_would_be_found(loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Webhooks.validate

    async def forgetting(self: Webhooks, *arguments: object) -> bytes:
        answer = await sound(self, *arguments)  # type: ignore[arg-type]
        return answer.replace(b'"uid":"7', b'"uid":"8')

    monkeypatch.setattr(Webhooks, "validate", forgetting)
    fuzzer = Fuzzer(SEED, loop)
    assert any(fuzzer.step() for _ in range(20))
