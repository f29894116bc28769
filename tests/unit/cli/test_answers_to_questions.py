"""explain and why-pending print an answer in each of its forms."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from tests.builders import a_policy
from webhook.cli.command import Form, write
from webhook.cli.explain import explain_answer
from webhook.cli.why_pending import why_pending_answer
from webhook.objects.refusal import Phrase
from webhook.policy.assignment.request import Assignment
from webhook.policy.classification.evidence import Evidence
from webhook.policy.values.tier_policy import Grade
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.report.explained import ClassShown, Explained, GangShown, HookShown, PodsNow, TenantOfIt
from webhook.report.pending import Holders, Room
from webhook.report.tenants import RowShown
from webhook.report.waiting import RefusedPods, WhyPending

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
REFUSED = RefusedPods("Job/train", "no room", 3, NOW - timedelta(minutes=2), NOW - timedelta(seconds=20), NOW)
BATCH = ClassShown("gpu-batch", 400, "PreemptLowerPriority", "gpu-batch")


def text(found: Explained | WhyPending, capsys: pytest.CaptureFixture[str], form: Form = "table") -> str:
    answer = explain_answer(found, NOW) if isinstance(found, Explained) else why_pending_answer(found)
    write(answer, form)
    return capsys.readouterr().out


def test_a_workload_that_waits_is_explained_with_what_its_controller_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = Explained(
        kind="PyTorchJob",
        name="llm",
        namespace="alpha",
        mode="Warn",
        assignment=Assignment(None, "label", Phrase("as-told", text="the label on PyTorchJob/llm says gpu-batch")),
        templates=(HookShown("file", 120, 130, template="a"), HookShown(why_not="no GPU", template="b")),
        class_of_new=BATCH,
        pods=(PodsNow(2, BATCH),),
        tenant=TenantOfIt("alpha", (), "Deny", (RowShown("gpu-batch", 2, 2, 0, 0, "Hold"),)),
        gang=GangShown("PyTorchJob.kubeflow.org/llm", "8 GPUs as gpu-batch", 4),
        refused=REFUSED,
        unread=("Which pods it has is unknown: you lack the right to list pods in alpha.",),
    )
    output = text(found, capsys)
    assert "hook of a new pod    a: file, 120 s to save, 130 s of grace\n" in output
    assert "hook of a new pod    b: none: no GPU\n" in output
    assert "its pods             2 with gpu-batch (400, PreemptLowerPriority)" in output
    assert "tenant               alpha: may use no tier; beyond its quota: Deny, for gpu-batch Hold" in output
    assert "8 GPUs as gpu-batch count as a whole; its pods use 4 of them now" in output
    assert "Job/train was refused 3 times, the last time 20 seconds ago. It may try again at any moment." in output
    assert "The mode is Warn here: nothing is refused yet." in output
    assert output.endswith("Which pods it has is unknown: you lack the right to list pods in alpha.\n"), "answer first"


def test_without_rights_there_is_no_table_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = "What a new one would get is unknown: you lack the right to list tenantquotas.gpu-tiers.dev."
    found = Explained(kind="Job", group="batch", namespace="alpha", name="train", judged=False, unread=(unknown,))
    assert text(found, capsys).splitlines() == [unknown]


def test_what_is_none_of_ours_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    output = text(
        Explained(kind="Pod", name="web", namespace="alpha", mode="Audit", left_alone="it asks for no GPU and no tier"),
        capsys,
    )
    assert "tier     gpu-tiers leaves it alone: it asks for no GPU and no tier\n" in output
    assert "type" not in output
    assert "The mode is Audit here: nothing is refused or changed yet." in output


def test_the_mode_of_a_file_is_not_said_to_be_the_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    output = text(Explained(kind="Pod", name="web", namespace="alpha", mode_of_file="Audit"), capsys)
    assert "--policy says mode Audit; the cluster's mode is not known." in output
    assert "nothing is refused" not in output


def test_a_guess_is_called_so_wherever_it_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    clue = Evidence(WorkloadType.TRAINING, 'its command ("torchrun")', Grade.Shown, "command")
    given = Assignment(None, "workload-type", Phrase("type-is", evidence=clue), clue)
    output = text(Explained(kind="Job", name="a", namespace="alpha", assignment=given, evidence=clue), capsys)
    assert 'type         training, a guess from its command ("torchrun")\n' in output
    assert 'decided by   workload-type: training, a guess from its command ("torchrun")\n' in output


def a_demoted(kind: str, **fields: object) -> Explained:
    """A workload that asks for gpu-training, and whose next pod gets gpu-batch."""
    batch = a_policy().tiers.get("gpu-batch")
    assert batch is not None
    given = Assignment(batch, "label", Phrase("as-told", text="the label says gpu-training"))
    lacks = Phrase("lacks-room", tenant="alpha", tier="gpu-training")
    given = replace(given, demoted_from="gpu-training", lacks=lacks, evicted=", which gpu-training may evict")
    return Explained(
        kind=kind,
        name="a",
        namespace="alpha",
        assignment=given,
        tiers=(batch,),
        tenant=TenantOfIt("alpha", (), "Demote"),
        **fields,
    )  # type: ignore[arg-type]


def test_a_gang_that_was_demoted_keeps_its_tier_when_there_is_room_again(capsys: pytest.CaptureFixture[str]) -> None:
    output = text(a_demoted("PyTorchJob", gang=GangShown("PyTorchJob/a", "8 GPUs as gpu-batch", 8)), capsys)
    assert (
        "over quota     tenant alpha had no room for it in gpu-training when it was applied: all of its pods run as "
        "gpu-batch"
    ) in output


def test_one_demoted_pod_does_not_stand_for_its_workload(capsys: pytest.CaptureFixture[str]) -> None:
    training = ClassShown("gpu-training", 1000, "PreemptLowerPriority", "gpu-training")
    output = text(a_demoted("Deployment", pods=(PodsNow(2, training), PodsNow(1, BATCH))), capsys)
    assert "tier         gpu-training\n" in output
    assert "over quota   tenant alpha has no room for it in gpu-training: a new pod now runs as gpu-batch" in output
    assert "its pods     2 with gpu-training (1000, PreemptLowerPriority); 1 with gpu-batch" in output


NO_CLASS = ClassShown("", 0, "PreemptLowerPriority")


def test_a_pod_that_nobody_marked_reads_why(capsys: pytest.CaptureFixture[str]) -> None:
    a_pod = {"kind": "Pod", "name": "a", "namespace": "alpha", "class_now": NO_CLASS}
    alone = text(Explained(**a_pod, left_alone="it asks for no GPU and no tier"), capsys)
    assert "decided by   nobody: gpu-tiers leaves it alone: it asks for no GPU and no tier\n" in alone
    wrong = text(Explained(**a_pod, mode="Warn", message="acme-reserach is no tier"), capsys)
    assert "decided by   nobody: it has no mark of gpu-tiers: it was created before gpu-tiers was installed, " in wrong
    assert "or with a mistake in mode Warn\n" in wrong


WAITS = WhyPending(
    "Job/train",
    "alpha",
    ("1 of its 4 pods is pending, such as train-0.",),
    tier="gpu-batch",
    scheduler="0/1 nodes are available",
    room=Room("4 nvidia.com/gpu", (), {"a": 0}, (Holders("gpu-training", "beta", 8, ("b/x",), "no: higher priority"),)),
    refused=REFUSED,
    retry="kubectl annotate job/train",
)


def test_an_answer_to_why_is_sentences_and_the_holders(capsys: pytest.CaptureFixture[str]) -> None:
    output = text(WAITS, capsys).splitlines()
    assert output[:4] == [
        "Job/train in namespace alpha, gpu-batch, each pod asks for 4 nvidia.com/gpu",
        "WHY",
        "1 of its 4 pods is pending, such as train-0.",
        "The scheduler says: 0/1 nodes are available",
    ]
    assert "gpu-training   beta     8      b/x    no: higher priority" in output
    assert "To have it tried at once: kubectl annotate job/train" in output


def test_programs_read_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(text(WAITS, capsys, "json"))
    assert found["room"]["holders"][0] == {
        "tier": "gpu-training",
        "tenant": "beta",
        "gpus": 8,
        "pods": ["b/x"],
        "why": "no: higher priority",
    }
    assert found["refused"]["triesAgain"] == "2026-05-04T12:00:00Z"
    assert "triesAgain: '2026-05-04T12:00:00Z'" in text(WAITS, capsys, "yaml")
