"""`templates: Mutate` on a real API server: whoever applies a manifest again finds nothing to change."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from installation.examples import example_policy
from localcluster import Result

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

ARGO, FLUX = (("--server-side", f"--field-manager={name}") for name in ("argocd-controller", "kustomize-controller"))


@pytest.fixture(scope="module")
def mutating(installed: Installed) -> Iterator[Installed]:
    """The webhook that writes the tier's class into templates."""
    installed.upgrade(policy=example_policy() | {"templates": "Mutate"})
    wait_until_in_force(installed)
    yield installed
    installed.upgrade()


def template(**spec: str) -> Tree:
    pod = gpu_pod("x")["spec"]
    pod["containers"][0] |= {"command": ["torchrun", "train.py"], "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {"metadata": {"labels": {"app": "x"}}, "spec": pod | spec}


def applied(api_version: str, kind: str, **spec: Any) -> Tree:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "work"}, "spec": spec}


DEPLOYMENT = applied("apps/v1", "Deployment", replicas=0, selector={"matchLabels": {"app": "x"}}, template=template())
JOB = applied("batch/v1", "Job", suspend=True, backoffLimit=0, template=template(restartPolicy="Never"))
GANG = applied("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Worker": {"replicas": 2, "template": template()}})
UNCHANGED = [DEPLOYMENT, JOB, GANG]


def template_of(stored: Tree) -> Tree:
    """The one template of these."""
    specs = stored["spec"].get("pytorchReplicaSpecs")
    found: Tree = specs["Worker"]["template"] if specs else stored["spec"]["template"]
    return found


def apply(webhook: Installed, manifest: Tree, namespace: str, *how: str, check: bool = True) -> Result:
    command = ("apply", f"--namespace={namespace}", "-f", "-", *how)
    return webhook.cluster.kubectl(*command, input=json.dumps(manifest), check=check)


def wait_until_in_force(webhook: Installed) -> None:
    """Wait until the API server asks about workloads that are to be written to."""

    def is_asked() -> bool:
        answer = webhook.create(GANG, "default", dry_run=True)
        return "priorityClassName" in template_of(json.loads(answer.stdout))["spec"]

    webhook.eventually(is_asked, "entries active")


@pytest.mark.parametrize("manifest", UNCHANGED, ids=[each["kind"] for each in UNCHANGED])
@pytest.mark.parametrize("how", [(ARGO, FLUX, ARGO, FLUX), ((), (), ())], ids=["server-side", "client-side"])
def test_a_manifest_without_the_class_changes_nothing_when_it_is_applied_again(
    mutating: Installed, namespace: str, manifest: Tree, how: tuple[tuple[str, ...], ...]
) -> None:
    what = f"{manifest['kind']}/work".lower()
    apply(mutating, manifest, namespace, *how[0])
    first = mutating.get(what, namespace)
    assert template_of(first)["spec"]["priorityClassName"] == "gpu-training"
    assert template_of(first)["metadata"]["annotations"]["gpu-tiers.dev/template-class"] == "gpu-training"
    for each in how[1:]:
        apply(mutating, manifest, namespace, *each)
        again = mutating.get(what, namespace)
        assert again["metadata"]["generation"] == first["metadata"]["generation"]
        assert template_of(again) == template_of(first)
        assert mutating.cluster.kubectl(
            "diff", f"--namespace={namespace}", "-f", "-", *each, input=json.dumps(manifest)
        ).stdout == "", "what Argo CD would call out of sync"  # fmt: skip


def test_two_that_apply_in_turn_write_once_each(mutating: Installed, namespace: str) -> None:
    """The second one's name is noted the first time; after that not even the resourceVersion changes."""
    versions = []
    for each in (ARGO, FLUX, ARGO, FLUX, ARGO):
        apply(mutating, GANG, namespace, *each)
        versions.append(mutating.get("pytorchjob/work", namespace)["metadata"]["resourceVersion"])
    assert len(set(versions)) == 2
    assert len(set(versions[1:])) == 1


def test_the_class_belongs_to_nobody_so_a_manifest_may_name_another(mutating: Installed, namespace: str) -> None:
    apply(mutating, GANG, namespace, *ARGO)
    shown = mutating.cluster.kubectl(
        "get", "pytorchjob/work", f"--namespace={namespace}", "--output=json", "--show-managed-fields"
    ).json()
    assert "f:priorityClassName" not in json.dumps(shown["metadata"]["managedFields"])
    named = copy.deepcopy(GANG)
    template_of(named)["spec"]["priorityClassName"] = "gpu-batch"
    apply(mutating, named, namespace, *FLUX)
    assert template_of(mutating.get("pytorchjob/work", namespace))["spec"]["priorityClassName"] == "gpu-batch"


def test_templates_in_a_list_are_left_as_they_are(mutating: Installed, namespace: str) -> None:
    workers = [{"groupName": "gpu", "replicas": 1, "template": template()}]
    ray = applied("ray.io/v1", "RayCluster", headGroupSpec={"template": template()}, workerGroupSpecs=workers)
    for each in (ARGO, FLUX):
        apply(mutating, ray, namespace, *each)
        assert mutating.get("raycluster/work", namespace)["spec"] == ray["spec"]


def test_a_deployment_rolls_out_once(mutating: Installed, namespace: str) -> None:
    """Its pods know the class of the template for ours, and bear the tier by its own reason."""
    for _ in range(3):
        apply(mutating, {**DEPLOYMENT, "spec": DEPLOYMENT["spec"] | {"replicas": 1}}, namespace, *ARGO)

    def pods() -> list[Tree]:
        found: list[Tree] = mutating.get("pods", namespace)["items"]
        return found

    mutating.eventually(lambda: bool(pods()), "a pod")
    (pod,) = pods()
    assert pod["spec"]["priorityClassName"] == "gpu-training"
    assert pod["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"].startswith("workload-type: training")
    assert len(mutating.get("replicasets", namespace)["items"]) == 1
