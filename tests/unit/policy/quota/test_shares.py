"""Parts of GPUs that a pod asks for by annotation, as KAI Scheduler and Run:ai read them."""

from decimal import Decimal

import pytest

from tests.builders import PodBuilder, a_deployment, a_job, a_pod, a_policy, a_pytorchjob, a_tenant
from tests.builders.words import told
from tests.builders.world import FakeApi
from webhook.objects.refusal import Refused
from webhook.policy.quota.charges import charge_of
from webhook.policy.quota.demand import demand_of
from webhook.policy.values.facts import Devices

SHARING = a_policy(
    resources=[
        {"name": "nvidia.com/gpu"},
        {"deviceClassName": "gpu.nvidia.com"},
        {"annotation": "gpu-fraction"},
        {"annotation": "gpu-memory", "memoryPerGPU": "80Gi"},
    ]
)
FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"


def sharing(**annotations: str) -> PodBuilder:
    """A pod under KAI: its GPU is in its annotations alone."""
    written = {name.replace("_", "-"): value for name, value in annotations.items()}
    return a_pod().running("python", "train.py").annotated(written).having("spec.schedulerName", "kai-scheduler")


DEMANDS: dict[str, tuple[PodBuilder, str]] = {
    "half a GPU": (sharing(gpu_fraction="0.5"), "0.5"),
    "as Go writes it": (sharing(gpu_fraction="5e-1"), "0.5"),
    "without a zero": (sharing(gpu_fraction=".25"), "0.25"),
    "a third is rounded up": (sharing(gpu_fraction="0.33333333"), "0.333334"),
    "of several GPUs": (sharing(gpu_fraction="0.5", gpu_fraction_num_devices="4"), "2"),
    "memory": (sharing(gpu_memory="20480"), "0.25"),
    "memory of several GPUs": (sharing(gpu_memory="40960", gpu_fraction_num_devices="8"), "4"),
    "more memory than a GPU has": (sharing(gpu_memory="90000"), "1"),
    "an empty annotation": (sharing(gpu_fraction=""), "0"),
    "a workflow's parameter": (sharing(gpu_fraction="{{inputs.parameters.fraction}}"), "1"),
    "none": (sharing(), "0"),
    "no GPU by name": (sharing(gpu_fraction="0.5").asking(0), "0.5"),
}


@pytest.mark.parametrize(("pod", "gpus"), DEMANDS.values(), ids=DEMANDS)
def test_a_pod_holds(pod: PodBuilder, gpus: str) -> None:
    assert demand_of(pod.view(), (), SHARING) == Decimal(gpus)


def test_a_weight_counts_and_claims_are_used_as_well() -> None:
    halved = a_policy(
        resources=[{"annotation": "gpu-fraction", "weight": "0.5"}, {"deviceClassName": "gpu.nvidia.com"}]
    )
    assert demand_of(sharing(gpu_fraction="0.5").view(), [Devices("gpu.nvidia.com", 1)], halved) == Decimal("1.25")


def test_an_annotation_that_the_policy_does_not_list_counts_nothing() -> None:
    assert demand_of(sharing(gpu_fraction="abc").view(), (), a_policy()) == 0


def field(annotation: str, value: str) -> str:
    return f'metadata.annotations[{annotation}]: "{value}"'


NUMBER = 'is not a part of a GPU; write a number above 0 and below 1, such as "0.5"'
MIB = 'is not a memory size; write whole MiB, such as "20000"'
MISTAKES: dict[str, tuple[PodBuilder, str]] = {
    **{
        f"a fraction of {value}": (sharing(gpu_fraction=value), f"{field(FRACTION, value)} {NUMBER}")
        for value in ("abc", "1.5", "-1", "1", "0", "0.0", "NaN", "inf", "50%", "500m", "0x1p-1", " 0.5")
    },
    **{
        f"memory of {value}": (sharing(gpu_memory=value), f"{field(MEMORY, value)} {MIB}")
        for value in ("abc", "0", "-1", "1.5", "20Gi", "99999999999999999999")
    },
    "no number of devices": (
        sharing(gpu_fraction="0.5", gpu_fraction_num_devices="0"),
        f'{field(DEVICES, "0")} is not a number of GPUs; write a whole one, such as "2"',
    ),
    "a fraction and memory": (
        sharing(gpu_fraction="0.5", gpu_memory="2000"),
        f"{field(FRACTION, '0.5')} and {field(MEMORY, '2000')} both ask for a part of a GPU; keep one of them",
    ),
    "a fraction and whole GPUs": (
        sharing(gpu_fraction="0.5").asking(2),
        (
            f"{field(FRACTION, '0.5')} asks for a part of a GPU, and the containers ask for GPUs by name; keep the "
            "annotation or the resource"
        ),
    ),
}


@pytest.mark.parametrize(("pod", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_by_name(pod: PodBuilder, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        demand_of(pod.view(), (), SHARING)
    assert told(refused.value) == sentence


async def test_a_pod_with_a_part_of_a_gpu_gets_a_tier_and_is_charged() -> None:
    world = FakeApi(a_tenant().allowing("1", tier="gpu-training"), policy=SHARING)
    for _ in range(2):
        assert (await world.create(sharing(gpu_fraction="0.5"))).allowed
    answer = await world.create(sharing(gpu_fraction="0.5"))
    assert "gpu-training is at 1 of 1 GPU; this pod asks for 0.5" in answer.sentence


async def test_a_mistake_is_refused_at_the_workload() -> None:
    answer = await FakeApi(policy=SHARING).validate(a_deployment(sharing(gpu_fraction="1.5")))
    assert answer.sentence == f"spec.template.{field(FRACTION, '1.5')} {NUMBER}"


async def test_a_training_pod_that_shares_a_gpu_gets_its_hook_in_the_container_that_has_it() -> None:
    job = a_pytorchjob()
    world = FakeApi(job, policy=SHARING)
    for named, hooked in ((None, "main"), ("trainer", "trainer")):
        annotations = {"gpu-fraction": "0.5"} | ({"gpu-fraction-container-name": named} if named else {})
        pod = a_pod().running("sleep", "inf").running("python", "train.py", name="trainer").annotated(annotations)
        spec = (await world.mutate(pod.owned_by(job))).patched["spec"]
        assert [each["name"] for each in spec["containers"] if "lifecycle" in each] == [hooked]


CHANGED: dict[str, tuple[dict[str, str], dict[str, str], str | None]] = {
    "more of it": ({FRACTION: "0.1"}, {FRACTION: "0.9"}, "metadata.annotations[gpu-fraction]: 0.9, but it was 0.1"),
    "a part for a pod that had none": ({}, {MEMORY: "9"}, "metadata.annotations[gpu-memory]: 9, but it was absent"),
    "more GPUs": (
        {FRACTION: "0.1"},
        {FRACTION: "0.1", DEVICES: "8"},
        "metadata.annotations[gpu-fraction-num-devices]: 8, but it was absent",
    ),
    "what leaves both unread": (
        {FRACTION: "0.9"},
        {FRACTION: "0.9", MEMORY: "1"},
        "metadata.annotations[gpu-memory]: 1, but it was absent",
    ),
    "a note": ({FRACTION: "0.1"}, {FRACTION: "0.1", "note": "1"}, None),
}


@pytest.mark.parametrize(("before", "after", "sentence"), CHANGED.values(), ids=CHANGED)
async def test_a_part_is_fixed_once_the_pod_exists(
    before: dict[str, str], after: dict[str, str], sentence: str | None
) -> None:
    """An annotation can be changed while the pod waits for its GPU, and its scheduler would read the new one."""
    old, new = (a_pod().running("sh").annotated(each) for each in (before, after))
    answer = await FakeApi(policy=SHARING).update(old, new)
    assert answer.allowed is (sentence is None)
    assert sentence is None or sentence in answer.sentence
    assert (await FakeApi().update(old, new)).allowed, "where the policy counts no parts"
    leaving = new.having("metadata.deletionTimestamp", "2026-01-01T00:00:00Z")
    assert (await FakeApi(policy=SHARING).update(old, leaving)).allowed is answer.allowed, "it uses what it used"


def test_a_pod_that_exists_is_charged_for_what_can_be_read() -> None:
    assert charge_of(sharing(gpu_fraction="abc").view(), (), SHARING) is None
    charge = charge_of(sharing(gpu_fraction="0.5").asking(2).view(), (), SHARING)
    assert charge is not None
    assert charge.gpus == 2


async def test_nothing_changes_for_a_job_of_whole_gpus() -> None:
    assert (await FakeApi(policy=SHARING).validate(a_job(a_pod().asking(2)))).allowed
