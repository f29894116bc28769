"""The GPUs that a pod uses: what the scheduler reserves for it, by weight."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.builders import PodBuilder, Tree, a_pod, a_policy
from tests.builders.words import sentence
from webhook.objects.refusal import Refused
from webhook.policy.quota.demand import asks_for_gpus, demand_of, gpus_of_pods, shared_by
from webhook.policy.values.weights import DeviceClass
from webhook.policy.workloads.workload import Devices

HALF = "nvidia.com/mig-3g.40gb"

DEMANDS: dict[str, tuple[PodBuilder, str]] = {
    "no container": (a_pod(), "0"),
    "no GPU": (a_pod().running("sh"), "0"),
    "one": (a_pod().asking(1), "1"),
    "none asked for": (a_pod().asking(0), "0"),
    "two containers": (a_pod().asking(2).asking(3, name="second"), "5"),
    "an init container that asks for less": (a_pod().asking(4).with_init(2), "4"),
    "an init container that asks for more": (a_pod().asking(4).with_init(8), "8"),
    "init containers run one after another": (a_pod().asking(1).with_init(3).with_init(3, name="second"), "3"),
    "a sidecar runs beside": (a_pod().asking(4).with_sidecar(1), "5"),
    "an init container after a sidecar": (a_pod().asking(1).with_sidecar(2).with_init(3), "5"),
    "an init container before a sidecar": (a_pod().asking(1).with_init(3).with_sidecar(2), "3"),
    "sidecars alone": (a_pod().running("sh").with_sidecar(1).with_sidecar(2, name="second"), "3"),
    "a slice": (a_pod().asking(1, resource=HALF), "0.5"),
    "slices and a GPU": (a_pod().asking(3, resource=HALF).asking(1, name="second"), "2.5"),
    "peaks of two resources": (a_pod().asking(1).with_init(1, resource=HALF), "1.5"),
    "a device class by its implicit name": (
        a_pod().asking(2, resource="deviceclass.resource.kubernetes.io/gpu.nvidia.com"),
        "2",
    ),
    "what the policy does not list": (a_pod().asking(1, resource="example.com/fpga"), "0"),
    "limits alone": (a_pod().having("spec.containers", [{"resources": {"limits": {"nvidia.com/gpu": 2}}}]), "2"),
    "requests alone": (a_pod().having("spec.containers", [{"resources": {"requests": {"nvidia.com/gpu": 2}}}]), "2"),
    "nulls": (a_pod().having("spec", {"containers": [{"resources": None}], "initContainers": None}), "0"),
}


@pytest.mark.parametrize(("pod", "gpus"), DEMANDS.values(), ids=DEMANDS)
def test_a_pod_holds(pod: PodBuilder, gpus: str) -> None:
    assert demand_of(pod.view(), (), a_policy()) == Decimal(gpus)


WITH_NICS = replace(a_policy(), classes={"nic": DeviceClass("nic", ("device.driver == 'nic.example.com'",))})


def test_claims_count_by_their_device_class() -> None:
    devices = [Devices("gpu.nvidia.com", 2), Devices("nic", 4)]
    assert demand_of(a_pod().asking(1).view(), devices, WITH_NICS) == 3


def test_a_claim_that_a_pod_names_twice_counts_once() -> None:
    devices = [Devices("gpu.nvidia.com", 2, entry, "gpu", "team-alpha/shared") for entry in ("a", "b")]
    assert demand_of(a_pod().view(), devices, a_policy()) == 2
    assert shared_by(devices, a_policy()) == {"team-alpha/shared": 2}


def test_claims_of_one_template_are_two() -> None:
    devices = [Devices("gpu.nvidia.com", 2, entry, "gpu") for entry in ("a", "b")]
    assert demand_of(a_pod().view(), devices, a_policy()) == 4
    assert shared_by(devices, a_policy()) == {}


@pytest.mark.parametrize(("count", "gpus"), [(0, 0), (1, 5), (3, 11)])
def test_like_pods_share_a_part(count: int, gpus: int) -> None:
    assert gpus_of_pods(count, Decimal(5), {"team-alpha/shared": Decimal(2)}) == gpus


USES: dict[str, tuple[list[Tree], bool]] = {
    "all of the claim": ([{"name": "gpu"}], True),
    "the request of the GPU": ([{"name": "gpu", "request": "card"}], True),
    "another request": ([{"name": "gpu", "request": "nic"}], False),
    "another claim": ([{"name": "scratch"}], False),
    "nothing": ([], False),
}


@pytest.mark.parametrize(("claims", "asks"), USES.values(), ids=USES)
def test_a_container_asks_for_gpus_by_the_claims_it_names(claims: list[Tree], *, asks: bool) -> None:
    devices = [Devices("gpu.nvidia.com", 1, "gpu", "card"), Devices("nic", 1, "gpu", "nic")]
    (container,) = a_pod().running(resources={"claims": claims}).view().spec.containers
    assert asks_for_gpus(container, devices, WITH_NICS) is asks


WRITTEN = [
    ("8", "8"),
    (8, "8"),
    ("8000m", "8"),
    ("1k", "1000"),
    ("2e0", "2"),
    ("1Ki", "1024"),
    (2.0, "2"),
]


@pytest.mark.parametrize(("value", "gpus"), WRITTEN)
def test_a_whole_number_may_be_written_in_many_ways(value: object, gpus: str) -> None:
    assert demand_of(a_pod().asking(value).view(), (), a_policy()) == Decimal(gpus)


@pytest.mark.parametrize("value", ["0.5", "-1", "500m", "1e9", "2000000", 1.5])
def test_what_no_pod_may_ask_for_is_refused(value: object) -> None:
    """Pod validation never lets these through; custom resources bring them."""
    with pytest.raises(Refused) as refused:
        demand_of(a_pod().asking(value).view(), (), a_policy())
    field = "spec.containers[0].resources.requests.nvidia.com/gpu"
    assert (
        sentence(refused.value.refusal) == f'{field}: "{value}" is not a number of GPUs; write a whole one, such as "2"'
    )


@pytest.mark.parametrize("value", ["", "two", "1 ", "0x8", "1KB", "--1", "٣", "1e", "nan", "9" * 200])
def test_what_is_no_quantity_is_refused(value: str) -> None:
    with pytest.raises(Refused) as refused:
        demand_of(a_pod().with_init(value).view(), (), a_policy())
    field = "spec.initContainers[0].resources.requests.nvidia.com/gpu"
    assert sentence(refused.value.refusal) == (
        f'{field}: "{value[:40]}" is not a quantity; write a whole number of GPUs, such as "2"'
    )


@pytest.mark.parametrize("parameter", ["{{inputs.parameters.gpus}}", "$(params.gpus)"])
def test_what_a_workflow_fills_in_later_counts_as_one(parameter: str) -> None:
    """Refusing it would refuse every parameterised workflow; the pods that come of it are judged by their numbers."""
    assert demand_of(a_pod().asking(parameter).view(), (), a_policy()) == 1
