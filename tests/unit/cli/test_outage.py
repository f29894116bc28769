"""why-pending promises no next pod while gpu-tiers does not answer."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from tests.builders import a_job
from tests.unit.cli.test_answers_to_questions import NOW, REFUSED
from tests.unit.cli.test_few_rights import reader
from webhook.admission.reviewer import Verdict
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import Finding
from webhook.cli.why_pending.reasons import NO_ANSWER, _with_refusal
from webhook.report.waiting import WhyPending

JOB = Document("the cluster", a_job().json())


class Judge:
    async def finding(self, document: Document) -> Finding:
        return Finding(document, Verdict(), document.tree)


@pytest.mark.parametrize(
    ("unreached", "said"),
    [
        (False, ("There is room now: the next try should pass.",)),
        (True, (NO_ANSWER, "Its pods are admitted once gpu-tiers answers.")),
    ],
)
async def test_a_pod_that_has_room_passes_unless_nobody_answers(unreached: bool, said: tuple[str, ...]) -> None:
    asked: Any = SimpleNamespace(
        judge=Judge(), reader=reader(), policy=SimpleNamespace(kinds=SimpleNamespace(by_kind={}))
    )
    refused = replace(REFUSED, unreached=unreached, ours=not unreached, tries_again=NOW + timedelta(seconds=9))
    found = await _with_refusal(asked, JOB, WhyPending("Job/train", "alpha", ()), refused, NOW, "Its pods are refused")
    assert found.sentences[1:-1] == said, "and then when it was refused"


def test_only_pods_with_gpus_are_refused_in_an_outage() -> None:
    assert "refused new GPU pods" in NO_ANSWER
