"""Public reports about other projects, tried on a real API server where no other module does.

docs/decisions/public-reports.md tells the rest.
"""

import json
from collections.abc import Iterator

import pytest

from localcluster import Result
from tests.builders.nodes import quiet_node

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

ONE = {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}


class Person:
    """A user with 2 GPUs, at a shell."""

    def __init__(self, installed: Installed, namespace: str, tenant: str) -> None:
        self.installed, self.namespace, self.tenant = installed, namespace, tenant

    def kubectl(self, command: str, *arguments: str) -> Result:
        """The namespace stands before a `--`, behind which the arguments are the container's."""
        return self.installed.cluster.kubectl(command, f"--namespace={self.namespace}", *arguments, check=False)

    def resize(self, **to: str) -> Result:
        resources = {"limits": to, "requests": to}
        patch = json.dumps({"spec": {"containers": [{"name": "main", "resources": resources}]}})
        return self.kubectl("patch", "pod/train-0", "--subresource=resize", "--type=strategic", f"--patch={patch}")

    def made_by_jobset(self, name: str) -> Result:
        """A pod of the JobSet `staged`, as if its Job were the JobSet itself."""
        uid = self.installed.get("jobset/staged", self.namespace)["metadata"]["uid"]
        pod = gpu_pod(name, tier="gpu-training")
        owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "staged", "uid": uid}
        pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        return self.installed.create(pod, self.namespace)

    def uses(self, usage: str) -> None:
        self.installed.eventually(lambda: self.installed.usage(self.tenant) == usage, usage)


@pytest.fixture
def person(installed: Installed, namespace: str) -> Iterator[Person]:
    with installed.tenant_for("reported", namespace, quotas=[{"gpus": "2"}]) as tenant:
        yield Person(installed, namespace, tenant)


@pytest.fixture
def training(person: Person) -> Iterator[Person]:
    """Their pod train-0 has a node and one GPU."""
    node = f"quiet-{person.namespace}"
    person.installed.create(quiet_node(node), "")
    pod = gpu_pod("train-0", tier="gpu-training", node=node, nodeName=node)
    pod["spec"]["containers"][0] |= {"command": ["torchrun", "train.py"], "resources": {"limits": ONE}}
    assert person.installed.create(pod, person.namespace).code == 0
    person.uses("total 1/2")
    yield person
    person.installed.api.delete("pods", namespace=person.namespace, seconds=0)
    person.installed.api.delete(f"node/{node}")


def test_a_running_pod_is_debugged_and_resized_as_without_gpu_tiers(training: Person) -> None:
    asked = training.installed.metric("gpu_tiers_reviews_total")
    debug = ("train-0", "--image=busybox:1", "--profile=general", "--attach=false", "--quiet")
    assert training.kubectl("debug", *debug, "--target=main").code == 0
    (debugger,) = training.installed.get("pod/train-0", training.namespace)["spec"]["ephemeralContainers"]
    assert debugger["image"] == "busybox:1"
    assert training.resize(cpu="500m").code == 0
    assert "only cpu and memory resources are mutable" in training.resize(**{"nvidia.com/gpu": "2"}).stderr
    assert training.installed.metric("gpu_tiers_reviews_total") == asked, "nobody asked gpu-tiers"
    training.uses("total 1/2")


def test_a_copy_for_debugging_is_charged_and_with_a_shell_in_it_refused_in_the_tier_of_training(
    training: Person,
) -> None:
    copy = ("train-0", "--copy-to=copy", "--profile=general", "--attach=false", "--quiet")
    refused = training.kubectl("debug", *copy, "--container=main", "--", "bash").stderr
    assert "spec.priorityClassName: gpu-training is not allowed for interactive workloads" in refused
    assert "it may use gpu-batch, gpu-interactive" in refused
    assert training.kubectl("debug", *copy, "--image=busybox:1").code == 0
    assert training.installed.get("pod/copy", training.namespace)["spec"]["priorityClassName"] == "gpu-training"
    training.uses("total 1/2 (+1 reserved)")


def test_pods_that_an_autoscaler_adds_are_charged_one_by_one(person: Person) -> None:
    """The HorizontalPodAutoscaler needs no metrics to bring a Deployment to its least."""
    template = {
        "metadata": {"labels": {"app": "api", "gpu-tiers.dev/tier": "gpu-serving"}},
        "spec": gpu_pod("")["spec"],
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "api"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"}, "spec": spec}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}
    scaling = {"minReplicas": 4, "maxReplicas": 9, "scaleTargetRef": target}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    for tree in (deployment, scaler | {"metadata": {"name": "api"}, "spec": scaling}):
        assert person.installed.create(tree, person.namespace).code == 0
    person.installed.eventually(lambda: any("exceeded quota: " in each for each in warnings_in(person)), "a refusal")
    person.uses("total 2/2")
    assert len(person.installed.get("pods", person.namespace)["items"]) == 2


def test_a_later_stage_of_a_jobset_gets_the_gpus_of_an_earlier_one(person: Person) -> None:
    """Its controller makes the second Job once the first is Complete. Between them the GPUs stay reserved."""
    assert person.installed.create(in_stages("tokenize", "train"), person.namespace).code == 0
    person.uses("total 0/2 (+2 reserved)")
    other = gpu_pod("other", tier="gpu-training")
    pods = ("tokenize-0", "tokenize-1")
    for pod in pods:
        assert person.made_by_jobset(pod).code == 0
    person.uses("total 2/2")
    for pod in pods:
        ended = ("--subresource=status", "--type=merge", '--patch={"status": {"phase": "Succeeded"}}')
        assert person.kubectl("patch", f"pod/{pod}", *ended).code == 0
    person.uses("total 0/2 (+2 reserved)")
    assert "exceeded quota: " in person.installed.create(other, person.namespace).stderr
    for pod in ("train-0", "train-1"):
        assert person.made_by_jobset(pod).code == 0
    person.uses("total 2/2")


def in_stages(first: str, second: str) -> Tree:
    """A JobSet of two Jobs, each of two pods of one GPU, of which one waits for the end of the other."""
    template = {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-training"}}, "spec": gpu_pod("")["spec"]}
    spec = {"parallelism": 2, "completions": 2, "template": template}
    jobs: list[Tree] = [{"name": name, "template": {"spec": spec}} for name in (first, second)]
    jobs[1]["dependsOn"] = [{"name": first, "status": "Complete"}]
    names = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "staged"}}
    return names | {"spec": {"replicatedJobs": jobs}}


def warnings_in(person: Person) -> list[str]:
    events: list[Tree] = person.installed.get("events", person.namespace)["items"]
    return [each["message"] for each in events if each["reason"] == "FailedCreate"]
