"""Properties of every review: an answer that the API server takes, and work in proportion to its size."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

from jsonpatch import JsonPatchException
from jsonpointer import JsonPointerException

from tests.builders import a_namespace, a_tenant
from tests.builders.world import Answer, FakeApi
from tests.fuzz.seeds import cluster
from tests.property.test_admission import POLICIES
from webhook.admission.review import BadReview, Request, decode

PRINTED = 21_000
"""Characters of a sentence. It may say an object's name whole, which the fuzz makes longer than an API server takes."""
CALLS, CALLS_A_BYTE = 150_000, 5
"""Python's calls: those for the most that is judged of a workload, and for each byte that is read."""
TENANTS = (
    a_tenant().allowing("6").allowing("1", flavor="h100"),
    a_tenant("beta", maxTier="gpu-serving", onExceed="Demote"),
)


class Work:
    """Counts Python's calls while it is on: time that no other process has a part in.

    A regular expression is compiled once in a process, by the first review that needs it, and does not count.
    """

    def __init__(self) -> None:
        self.calls = 0

    def __enter__(self) -> "Work":
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call") and not str(frame.f_globals.get("__name__")).startswith("re."):
            self.calls += 1


def judge(body: bytes, which: int, loop: asyncio.Runner) -> tuple[str, ...]:
    """Ask both webhooks under one of the policies. Returns what is new or old about the answers.

    Raises AssertionError where an answer is wrong, and whatever else a webhook raises.
    """
    try:
        request = decode(body)
    except BadReview as bad:
        return ("bad", _shape(str(bad)))
    world = FakeApi(*cluster(), *TENANTS, a_namespace("team-beta"), policy=POLICIES[which % len(POLICIES)])
    return loop.run(_judged(world, request, body))


async def _judged(world: FakeApi, request: Request, body: bytes) -> tuple[str, ...]:
    mutated = await _answered(world.webhooks.mutate, request, body)
    validated = await _answered(world.webhooks.validate, request, body)
    if mutated is not None and mutated.patch and mutated.sent is not None:
        try:
            patched = mutated.patched
        except (JsonPatchException, JsonPointerException):
            # The API server decodes a Pod by its type: none arrives whose tolerations are a text.
            assert request.kind.kind == "Pod", mutated.patch
        else:
            await _settles(world, body, patched)
    return (*_signature("mutate", mutated), *_signature("validate", validated))


async def _settles(world: FakeApi, body: bytes, patched: Any) -> None:
    """A second pass over what the first one made changes nothing."""
    try:
        review = json.loads(body)
        review["request"]["object"] = patched
        request = decode(json.dumps(review).encode())
    except (ValueError, BadReview):
        return  # in a part that nobody reads it is no JSON
    again = Answer(patched, json.loads(await world.webhooks.mutate(request))["response"])
    assert again.patch == [], f"a second pass changes {[each['path'] for each in again.patch]}"


async def _answered(
    webhook: Callable[[Request], Coroutine[Any, Any, bytes]], request: Request, body: bytes
) -> Answer | None:
    """The answer; None for a review that is refused as such (HTTP 400)."""
    with Work() as work:
        try:
            sent = await webhook(request)
        except (BadReview, RecursionError):
            return None
    assert work.calls <= CALLS + CALLS_A_BYTE * len(body), f"{work.calls} calls for {len(body)} bytes"
    envelope = json.loads(sent, parse_constant=_no_json)
    assert (envelope["apiVersion"], envelope["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    answer = Answer(_object_in(request), envelope["response"])
    assert answer.response["uid"] == request.uid
    for sentence in (answer.sentence, *answer.warnings):
        assert sentence.isprintable(), sentence
        assert len(sentence) <= PRINTED, sentence[:200]
    assert answer.allowed or answer.sentence
    assert all(isinstance(value, str) for value in answer.audit.values())
    return answer


def _object_in(request: Request) -> Any:
    """The object; none where parts of it that nobody reads are no JSON, which no API server sends."""
    try:
        return json.loads(bytes(request.object).decode())
    except ValueError:
        return None


def _no_json(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _signature(webhook: str, answer: Answer | None) -> tuple[str, ...]:
    """Return the kind of an answer, without names and numbers."""
    if answer is None:
        return (webhook, "bad")
    paths = sorted({re.sub(r"\d+", "0", each["path"]) for each in answer.patch})
    warnings = sorted({_shape(each) for each in answer.warnings})
    return (
        webhook,
        str(answer.allowed),
        _shape(answer.sentence),
        *paths,
        *warnings,
        _shape(answer.audit.get("assigned-by", "")),
    )


def _shape(sentence: str) -> str:
    return re.sub(r"\d+|\"[^\"]*\"|\S*[/.\[]\S*", "#", sentence)[:60]
