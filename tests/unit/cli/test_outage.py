"""Commands while gpu-tiers does not answer: they say how to go on, and show no secret path."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import typer
from msgspec.structs import replace

from tests.builders import a_job
from tests.unit.cli.test_answers_to_questions import NOW, REFUSED
from tests.unit.cli.test_few_rights import reader
from webhook.admission.reviewer import Verdict
from webhook.cli import open_gates
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import Finding
from webhook.cli.why_pending.reasons import AFTER_AN_OUTAGE, NO_ANSWER, _with_refusal
from webhook.kube.client import Page
from webhook.kube.errors import failure
from webhook.objects.pods import QUOTA_GATE
from webhook.report.waiting import WhyPending

RETRY = 'kubectl annotate job/train -n team-alpha --overwrite example.com/retry="$(date +%s)"'
JOB = Document("the cluster", a_job().json())


class Judge:
    async def finding(self, document: Document) -> Finding:
        return Finding(document, Verdict(), document.tree)


@pytest.mark.parametrize(
    ("unreached", "said"),
    [
        (False, ("There is room now: the next try should pass.",)),
        (True, (NO_ANSWER, AFTER_AN_OUTAGE, f"To have it tried at once then: {RETRY}")),
    ],
)
async def test_a_pod_that_has_room_passes_unless_nobody_answers(unreached: bool, said: tuple[str, ...]) -> None:
    asked: Any = SimpleNamespace(
        judge=Judge(), reader=reader(), policy=SimpleNamespace(kinds=SimpleNamespace(by_kind={}))
    )
    refused = replace(REFUSED, unreached=unreached, ours=not unreached, tries_again=NOW + timedelta(seconds=9))
    found = await _with_refusal(asked, JOB, WhyPending("Job/train", "alpha", ()), refused, NOW, "Its pods are refused")
    assert found.retry == ("" if unreached else RETRY), "while gpu-tiers is down it would be refused again"
    assert found.sentences[1:-1] == said, "and then when it was refused"


def test_only_pods_with_gpus_are_refused_in_an_outage() -> None:
    assert "refused new GPU pods" in NO_ANSWER


class Refusing:
    """An API server with one gated pod, whose call of the webhook fails. It is its own client, and a Target."""

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Refusing"]:
        yield self

    async def list_pages(self, *_: object) -> AsyncIterator[Page]:
        metadata = {"namespace": "alpha", "name": "train-0", "creationTimestamp": "2026-11-22T00:00:00Z"}
        pod = {"metadata": metadata, "spec": {"schedulingGates": [{"name": QUOTA_GATE}]}}
        yield Page(items=[msgspec.Raw(msgspec.json.encode(pod))])

    async def patch(self, where: str, *_: object, **__: object) -> None:
        url = "https://127.0.0.1:25134/66ff39117a572a916fa071c4893a6428/validate?timeout=5s"
        said = f'failed calling webhook "pods-update.validate.gpu-tiers.dev": failed to call webhook: Post "{url}": EOF'
        raise failure("PATCH", where, 500, json.dumps({"message": said}).encode())


async def test_gates_that_the_dead_webhook_is_asked_about_need_the_end_of_enforcement(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """At 3 a.m. gpu-tiers is dead, and queued pods must start. The ticket gets what the command printed."""
    with pytest.raises(typer.Exit):
        await open_gates._asked(Refusing(), None, yes=True, nodes=False, wait_seconds=0)  # type: ignore[arg-type]
    said = capsys.readouterr().err
    assert 'Post "https://127.0.0.1:25134/SECRET/validate?timeout=5s": EOF. ' in said
    assert said.endswith("so end enforcement first, and ask again: docs/break-glass.md.\n")
