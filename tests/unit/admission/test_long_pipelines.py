"""Workloads of very many pod templates: a pipeline is judged by its first ones, a gang as a whole or not at all."""

from tests.builders import Tree, a_tenant
from tests.builders.world import FakeApi


def a_pipeline(steps: int) -> Tree:
    train = {"image": "example.com/train:1", "command": ["torchrun", "train.py"]}
    asking = train | {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    templates = [{"name": f"step-{number}", "container": asking} for number in range(steps)]
    return _applied("argoproj.io/v1alpha1", "Workflow", {"entrypoint": "step-0", "templates": templates})


def a_gang(jobs: int) -> Tree:
    container = {"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}
    replicated = [{"name": f"job-{number}", "template": template} for number in range(jobs)]
    return _applied("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": replicated})


def _applied(version: str, kind: str, spec: Tree) -> Tree:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "long", "namespace": "team-alpha"}, "spec": spec}


async def test_a_long_pipeline_is_admitted_for_its_pods_are_judged_one_by_one() -> None:
    answer = await FakeApi(a_tenant().allowing("4")).validate(a_pipeline(300))
    assert (answer.allowed, answer.audit["tier"]) == (True, "gpu-training")


async def test_a_gang_is_booked_as_a_whole_so_all_of_it_is_judged() -> None:
    answer = await FakeApi(a_tenant().allowing("999")).validate(a_gang(251))
    assert answer.sentence == "more than 250 pod templates; gpu-tiers judges 250 at most"
