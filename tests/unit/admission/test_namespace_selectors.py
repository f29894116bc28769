"""A gang counts on the flavor that the node selector of its namespace chooses, as its pods will be admitted with it."""

import pytest

from tests.builders import (
    Built,
    PodBuilder,
    a_deployment,
    a_job,
    a_namespace,
    a_pod,
    a_podgroup,
    a_policy,
    a_pytorchjob,
    a_tenant,
)
from tests.builders.world import FakeApi
from webhook.policy.values.facts import namespace_selector

PRODUCT = "nvidia.com/gpu.product"
FLAVORS = [{"name": name, "nodeLabels": {PRODUCT: name.upper()}} for name in ("a100", "h100")]
POLICY = a_policy(resourceFlavors=FLAVORS)
UPSTREAM, OPENSHIFT = "scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector"


def on(selector: str, annotation: str = UPSTREAM) -> Built:
    return a_namespace().annotated({annotation: selector})


def world(*objects: Built) -> FakeApi:
    rows = a_tenant().allowing("9").allowing("1", flavor="a100").allowing("4", flavor="h100")
    return FakeApi(rows, *objects, policy=POLICY)


def on_h100(gpus: int) -> PodBuilder:
    """A pod as the plugin leaves it."""
    return a_pod().asking(gpus).having("spec.nodeSelector", {PRODUCT: "H100"})


@pytest.mark.parametrize("annotation", [UPSTREAM, OPENSHIFT])
async def test_a_gang_is_booked_on_the_flavor_of_its_namespace(annotation: str) -> None:
    gang = a_pytorchjob(a_pod().asking(2), workers=2)
    cluster = world(on(f"{PRODUCT}=H100, zone = b", annotation))
    assert (await cluster.create(gang)).allowed, "without the selector it would count on the a100 too"
    assert "tenant alpha has 0 of h100 left" in (await cluster.create(gang.named("next"))).sentence


async def test_its_pods_draw_on_that_booking() -> None:
    gang = a_pytorchjob(a_pod().asking(2), workers=2)
    cluster = world(on(f"{PRODUCT}=H100"), gang)
    assert (await cluster.validate(gang)).allowed
    for number in range(2):
        assert (await cluster.create(on_h100(2).owned_by(gang).named(f"worker-{number}"))).allowed
    assert "h100 is at 4 of 4" in (await cluster.create(on_h100(1))).sentence


async def test_a_pod_counts_by_what_stands_in_it_alone() -> None:
    """Nobody can see whether the plugin runs: a pod without the selector may land on any node."""
    cluster = world(on(f"{PRODUCT}=H100"))
    assert "a100 allows 1 GPU" in (await cluster.create(a_pod().asking(2))).sentence
    assert (await cluster.create(on_h100(2))).allowed


async def test_a_deployment_hears_early_of_its_namespaces_flavor_alone() -> None:
    cluster = world(on(f"{PRODUCT}=H100"))
    assert (await cluster.create(a_deployment(a_pod().asking(2).of_tier("gpu-serving")))).warnings == []
    refused = await cluster.create(a_deployment(a_pod().asking(2).of_tier("gpu-serving"), replicas=3))
    assert "h100 allows 4 GPUs; this Deployment asks for 6 in all." in refused.sentence


async def test_a_group_is_demoted_by_the_flavor_of_its_namespace() -> None:
    """Its owner's pods would have no room on the other flavor."""
    job = a_job(a_pod().asking(2).of_tier("gpu-training"), parallelism=2)
    rows = a_tenant(onExceed="Demote").allowing("1", tier="gpu-training", flavor="a100").allowing("9")
    group = a_podgroup().owned_by(job)
    answer = await FakeApi(on(f"{PRODUCT}=H100"), rows, job, policy=POLICY).mutate(group)
    assert answer.patched["metadata"]["labels"]["gpu-tiers.dev/tier"] == "gpu-training"
    answer = await FakeApi(a_namespace(), rows, job, policy=POLICY).mutate(group)
    assert answer.patched["metadata"]["labels"]["gpu-tiers.dev/tier"] == "gpu-batch", "it may land on the a100"


async def test_a_template_that_contradicts_its_namespace_is_warned_about() -> None:
    pod = a_pod().asking(1).of_tier("gpu-serving").having("spec.nodeSelector", {PRODUCT: "A100"})
    answer = await world(on(f"{PRODUCT}=H100")).create(a_deployment(pod))
    assert answer.warnings == [
        f"[node-selector] nodeSelector {PRODUCT}: A100 contradicts H100 of the namespace; the pods are refused"
    ]


@pytest.mark.parametrize(
    ("annotations", "labels"),
    [
        ({}, {}),
        ({UPSTREAM: ""}, {}),
        ({UPSTREAM: "gpu=h100"}, {"gpu": "h100"}),
        ({UPSTREAM: " gpu = h100 ,zone="}, {"gpu": "h100", "zone": ""}),
        ({UPSTREAM: "gpu in (a, b)"}, {}),
        ({UPSTREAM: "gpu=h100,,"}, {}),
        ({OPENSHIFT: "gpu=h100"}, {"gpu": "h100"}),
        ({UPSTREAM: "gpu=a100", OPENSHIFT: "gpu=h100"}, {"gpu": "a100"}),
        ({UPSTREAM: "", OPENSHIFT: "gpu=h100"}, {}),
    ],
)
def test_the_annotation_is_read_as_the_plugin_reads_it(annotations: dict[str, str], labels: dict[str, str]) -> None:
    assert namespace_selector(annotations) == labels
