"""`untiered: Refuse` forces a choice: what names no tier is refused with the tiers that it may choose."""

import pytest

from tests.builders import Built, PodBuilder, a_job, a_notebook, a_pod, a_policy, a_tenant, assigned
from tests.builders.operators import a_raycluster, an_mpijob
from tests.builders.words import told
from tests.builders.world import FakeApi
from webhook.objects.refusal import Refused

REFUSE = a_policy(untiered="Refuse")
LABEL = "write the label gpu-tiers.dev/tier, whose value is one of"
ALL = "gpu-training, gpu-serving, gpu-batch, gpu-interactive"
TORCHRUN = a_pod().asking(command=["torchrun", "train.py"])


def refusal(pod: PodBuilder, *owners: object, **more: object) -> str:
    with pytest.raises(Refused) as refused:
        assigned(pod, *owners, **{"policy": REFUSE, **more})
    return told(refused.value)


def test_what_names_no_tier_is_refused_with_those_that_it_may_choose() -> None:
    assert refusal(TORCHRUN) == f"names no tier, and the policy leaves the choice to you: {LABEL} {ALL}"
    beta = a_tenant("beta", maxTier="gpu-batch")
    assert refusal(TORCHRUN, tenant=beta).endswith(f"{LABEL} gpu-batch, gpu-interactive")
    assert refusal(a_pod().asking(), a_notebook()).endswith(f"{LABEL} gpu-batch, gpu-interactive")
    spare = a_tenant("spare", maxTier="gpu-interactive")
    said = "write the label gpu-tiers.dev/tier, whose value is gpu-interactive"
    assert refusal(TORCHRUN, tenant=spare).endswith(said)


def test_a_default_is_nobody_s_choice() -> None:
    assert refusal(a_pod().asking(), tenant=a_tenant(defaultTier="gpu-batch")).endswith(f"{LABEL} {ALL}")


RULE = {"match": {"namespaces": ["team-alpha"]}, "tier": "gpu-batch"}


@pytest.mark.parametrize(
    ("pod", "owner", "fields"),
    [
        (TORCHRUN.of_tier("gpu-batch"), None, {}),
        (TORCHRUN.of_class("gpu-batch"), None, {}),
        (TORCHRUN, a_job(name="night").of_tier("gpu-batch"), {}),
        (TORCHRUN, None, {"rules": [RULE]}),
    ],
)
def test_a_label_a_class_and_a_rule_name_one(pod: PodBuilder, owner: object, fields: dict[str, object]) -> None:
    owners = () if owner is None else (owner,)
    found = assigned(pod, *owners, policy=a_policy(untiered="Refuse", **fields))
    assert found.tier
    assert found.tier.name == "gpu-batch"


def test_a_class_outside_the_tiers_is_a_choice_too() -> None:
    assert assigned(TORCHRUN.of_class("house"), policy=REFUSE).tier is None


def test_a_launcher_without_gpus_goes_with_its_gang() -> None:
    launcher = a_pod().running("mpirun", "python", "train.py")
    assert assigned(launcher, an_mpijob(), policy=REFUSE).step == "workload-type"


def namespace(value: str) -> Built:
    return Built(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "team-alpha", "labels": {"gpu-tiers.dev/untiered": value}},
        }
    )


@pytest.mark.parametrize("value", ["Refuse", "refuse"])
async def test_a_namespace_may_be_stricter_than_the_policy(value: str) -> None:
    """The whole Job is refused when it is applied, not its pods one by one."""
    answer = await FakeApi(namespace(value)).validate(a_job(TORCHRUN, name="night"))
    assert answer.sentence.endswith(f"names no tier, and namespace team-alpha leaves the choice to you: {LABEL} {ALL}")
    assert (await FakeApi(namespace(value)).validate(a_job(TORCHRUN, name="night").of_tier("gpu-batch"))).allowed


@pytest.mark.parametrize("value", ["Assign", "Reject"])
async def test_a_namespace_is_not_milder_than_the_policy(value: str) -> None:
    assert (await FakeApi(namespace(value)).validate(a_job(TORCHRUN, name="night"))).allowed
    strict = FakeApi(namespace(value), policy=REFUSE)
    assert not (await strict.validate(a_job(TORCHRUN, name="night"))).allowed


async def test_a_pod_with_a_label_passes_every_pass_and_one_without_none() -> None:
    world = FakeApi(policy=REFUSE)
    assert (await world.create(TORCHRUN.of_tier("gpu-batch"))).allowed
    assert not (await world.create(TORCHRUN)).allowed


async def test_a_cluster_that_names_no_tier_reads_that_first_and_then_the_floor_that_does_not_fit() -> None:
    """Two rounds at most: it would run with 16 workers of the 32 that it asks for, and the tenant has 12 GPUs."""
    asked_for = a_raycluster(replicas=32, minReplicas=16, maxReplicas=32)
    cluster = asked_for.having("spec.enableInTreeAutoscaling", value=True)
    world = FakeApi(a_tenant().allowing("12"), policy=REFUSE)
    first = await world.validate(cluster)
    assert first.sentence.endswith(f"names no tier, and the policy leaves the choice to you: {LABEL} {ALL}")
    assert "GPUs" not in first.sentence
    then = await world.validate(cluster.of_tier("gpu-batch"))
    assert "tenant alpha: the total allows 12 GPUs; this RayCluster asks for at least 16, at most 32. " in then.sentence
    assert "in all" not in then.sentence
    roomy = FakeApi(a_tenant().allowing("16"), policy=REFUSE)
    assert (await roomy.validate(cluster.of_tier("gpu-batch"))).allowed
    assert not (await roomy.validate(cluster)).allowed, "room is no tier"
