"""The mark that `gpu-tiers check` asks for: on dry runs that ask for it, on refusals too, and on nothing else."""

import json
from typing import Any, Literal

import msgspec
import pytest
from msgspec import structs

from tests.builders import a_pod, a_policy
from tests.builders.world import FakeApi
from webhook.admission import review
from webhook.admission.review import GroupVersionKind, Request
from webhook.cli.cluster.snapshot import _pod
from webhook.kube.client import warning_text
from webhook.report.latest import ANNOTATION, MOST_NAME, ReplicaMark, marks_in
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder, marked


def mark(webhook: Literal["mutate", "validate"]) -> ReplicaMark:
    """Return the mark of a replica with the longest name that is shown."""
    return ReplicaMark(webhook, "r" * MOST_NAME, "0123456789ab", taken=True, watches=100_000, certificate=4_000_000_000)


def asking(*, dry_run: bool = True, annotations: dict[str, str] | None = None) -> Request:
    pod = {"kind": "Pod", "metadata": {"annotations": {ANNOTATION: ""} if annotations is None else annotations}}
    return Request(uid="u", object=msgspec.Raw(msgspec.json.encode(pod)), dry_run=dry_run)


async def let_in(request: Request, patience: float) -> bytes:
    del patience
    return review.allow(request, warnings=["[type-unknown] unknown type"])


async def refused(request: Request, patience: float) -> bytes:
    del patience
    return review.deny(request, "tenant alpha: gpu-batch is at 2 of 2 GPUs")


async def answered(request: Request, handler: Any = let_in) -> dict[str, Any]:
    return dict(json.loads(await marked("validate", handler, mark)(request, 1.0))["response"])


async def test_an_annotation_that_begins_like_it_asks_for_nothing() -> None:
    asked = asking(annotations={f"{ANNOTATION}point-timeout": "60"})
    assert (await answered(asked))["warnings"] == ["[type-unknown] unknown type"]


async def test_a_dry_run_that_asks_for_it_is_marked_beside_its_own_warnings() -> None:
    own, added = (await answered(asking()))["warnings"]
    assert own == "[type-unknown] unknown type"
    assert [*marks_in([own, added])] == [mark("validate")]
    assert len(added) <= review.WARNING_LENGTH, "the API server cuts longer ones"


async def test_a_refusal_is_marked_and_stays_one() -> None:
    response = await answered(asking(), refused)
    assert (response["allowed"], response["status"]["code"]) == (False, 403)
    assert [*marks_in(response["warnings"])] == [mark("validate")]


@pytest.mark.parametrize("request_", [asking(dry_run=False), asking(annotations={})], ids=["a create", "nobody asks"])
async def test_nothing_else_is_marked(request_: Request) -> None:
    assert (await answered(request_))["warnings"] == ["[type-unknown] unknown type"]
    assert "warnings" not in await answered(request_, refused)


@pytest.mark.parametrize("mode", ["Audit", "Enforce"])
async def test_who_checks_often_fills_no_log(lines: list[dict[str, Any]], mode: str) -> None:
    """A dry run in a namespace without a tenant is refused: that is its answer, and no news for anybody else."""
    world = FakeApi(policy=a_policy(mode=mode, namespacesWithoutTenant="Deny"))
    webhooks = structs.replace(world.webhooks, record=Recorder(Metrics()))
    checks, tries = _pod("gpu-batch"), a_pod("tried").asking().of_tier("gpu-batch").json()
    for tree in (checks, tries):
        request = Request(uid="u", kind=GroupVersionKind(kind="Pod"), namespace="team-alpha", operation="CREATE")
        asked = structs.replace(request, object=msgspec.Raw(msgspec.json.encode(tree)), dry_run=True)
        await webhooks.mutate(asked)
        await webhooks.validate(asked)
    levels = [each["log_level"] for each in lines]
    assert set(levels[: len(levels) // 2]) == {"debug"}
    assert set(levels[len(levels) // 2 :]) == {"info"}


def test_it_is_read_from_the_header_that_the_api_server_makes_of_it() -> None:
    """Go's net/http has it as a quoted string (RFC 7234, 5.5)."""
    text = mark("mutate").warning()
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert [*marks_in([warning_text(f'299 - "{quoted}"')])] == [mark("mutate")]
