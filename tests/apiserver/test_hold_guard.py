"""Nobody but gpu-tiers opens the gate of a pod that waits for quota; the API server sees to it by itself."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from localcluster import Result
from localcluster.waiting import wait_until

from .installed import Installed, Tree, gpu_pod

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("full")]

GATE = "gpu-tiers.dev/quota"
Who = Mapping[str, str]
MALLORY = {"user": "mallory"}
ROOT = {"user": "root", "group": "system:masters"}
COLLECTOR = {"user": "system:serviceaccount:kube-system:generic-garbage-collector"}
OURSELVES: Who = {}
REFUSAL = "spec.schedulingGates: gpu-tiers.dev/quota is opened by gpu-tiers when the tenant's quota has room; leave it"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "0c5e1b1a-5f0c-4e0c-9d5c-000000000001"}

Kubectl = Callable[..., Result]


def gated(name: str = "held", *gates: str) -> Tree:
    return gpu_pod(name, tier="gpu-batch", schedulingGates=[{"name": each} for each in gates or (GATE,)])


@pytest.fixture
def full(installed: Installed, namespace: str) -> Iterator[None]:
    """The namespace's tenant has one GPU, and somebody has that."""
    with installed.tenant_for(namespace, namespace, quotas=[{"gpus": 1}], onExceed="Hold"):
        installed.create(gpu_pod("first", tier="gpu-batch"), namespace)
        installed.eventually(
            lambda: "schedulingGates" not in installed.get("pod/first", namespace)["spec"], "the first"
        )
        yield


@dataclass(frozen=True)
class Pods:
    """The pods of a namespace where mallory has the role `edit`."""

    installed: Installed
    namespace: str

    def create(self, tree: Tree) -> None:
        answer = self.installed.create(tree, self.namespace)
        assert not answer.code, answer.stderr

    def patch(
        self,
        who: Who,
        change: object,
        form: str = "merge",
        *,
        name: str = "held",
        part: str = "",
        dry_run: bool = False,
    ) -> Result:
        how = {"form": form, "part": part, "dry_run": dry_run, "check": False, **who}
        return self.installed.api.patch(f"pod/{name}", change, self.namespace, **how)

    def get(self, name: str = "held") -> Tree:
        return self.installed.get(f"pod/{name}", self.namespace)

    def gates(self, name: str = "held") -> list[str]:
        return [each["name"] for each in self.get(name)["spec"].get("schedulingGates", [])]


@pytest.fixture
def pods(installed: Installed, namespace: str) -> Pods:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "mallory"}}
    installed.api.create(binding | {"roleRef": role, "subjects": [{"kind": "User", "name": "mallory"}]}, namespace)
    return Pods(installed, namespace)


@pytest.fixture
def held(pods: Pods) -> Iterator[Pods]:
    """With a queued pod that has two gates."""
    pods.create(gated("held", "example.com/other", GATE))
    wait_until(lambda: REFUSAL in pods.patch(MALLORY, WITHOUT, dry_run=True).stderr, 30, "the guard")
    yield pods
    pods.installed.api.delete("pod/held", namespace=pods.namespace, seconds=0)


@pytest.fixture
def kubectl(installed: Installed, namespace: str) -> Kubectl:
    """Run kubectl as mallory."""

    def run(*arguments: str, tree: Tree) -> Result:
        command = (*arguments, "-f", "-", "--as=mallory", f"--namespace={namespace}")
        return installed.cluster.kubectl(*command, input=json.dumps(tree), check=False)

    return run


WITHOUT: Tree = {"spec": {"schedulingGates": None}}

BY_NAME = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
PATCHES: dict[str, tuple[str, object]] = {
    "a strategic patch": ("strategic-merge", BY_NAME),
    "a strategic patch of all gates": ("strategic-merge", WITHOUT),
    "a merge patch": ("merge", {"spec": {"schedulingGates": [{"name": "example.com/other"}]}}),
    "a JSON patch": ("json", [{"op": "remove", "path": "/spec/schedulingGates/1"}]),
}


@pytest.mark.parametrize("who", [MALLORY, ROOT, COLLECTOR], ids=["edit", "an administrator", "a controller"])
def test_no_patch_opens_it(held: Pods, who: Who) -> None:
    for what, (form, change) in PATCHES.items():
        assert REFUSAL in held.patch(who, change, form).stderr, what
    assert held.gates() == ["example.com/other", GATE]


def test_neither_does_replace(held: Pods, kubectl: Kubectl) -> None:
    found = held.get()
    del found["spec"]["schedulingGates"]
    del found["metadata"]["resourceVersion"]  # the leader may write why it waits just now
    assert REFUSAL in kubectl("replace", tree=found).stderr


@pytest.mark.parametrize(
    "how",
    [("--server-side",), ("--server-side", "--field-manager=gpu-tiers"), ("--server-side=false",)],
    ids=["server-side", "in our name", "client-side"],
)
def test_neither_does_apply(held: Pods, kubectl: Kubectl, how: tuple[str, ...]) -> None:
    """Also of a pod whose gate belongs to whoever applies."""
    applied = gated("applied")
    assert not kubectl("apply", *how, tree=applied).code
    del applied["spec"]["schedulingGates"]
    assert REFUSAL in kubectl("apply", *how, tree=applied).stderr
    assert held.gates("applied") == [GATE]


def test_subresources_leave_the_gate_where_it_is(held: Pods) -> None:
    for part in ("status", "resize", "ephemeralcontainers"):
        held.patch(ROOT, WITHOUT, part=part)
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "held"}, "target": {"name": "node-1"}}
    path = f"--raw=/api/v1/namespaces/{held.namespace}/pods/held/binding"
    root = ("--as=root", "--as-group=system:masters")
    asked = held.installed.cluster.kubectl("create", path, "-f", "-", *root, input=json.dumps(binding), check=False)
    assert asked.code
    assert held.gates() == ["example.com/other", GATE]


def test_gpu_tiers_opens_it_and_others_their_own_gates(held: Pods) -> None:
    """The webhook of these tests is who runs them."""
    other = {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/other"}]}}
    assert not held.patch(MALLORY, other, "strategic-merge").code
    assert held.gates() == [GATE]
    assert not held.patch(OURSELVES, BY_NAME, "strategic-merge").code
    assert held.gates() == []


MOVES: dict[str, tuple[Tree, str]] = {
    "an owner": (
        {"ownerReferences": [OWNER]},
        "metadata.ownerReferences: can't change while the pod has the gate",
    ),
    "a tier": (
        {"labels": {"gpu-tiers.dev/tier": "gpu-training"}},
        "delete its workload, or a pod without one, and create it again with the tier that you want",
    ),
    "no tier": ({"labels": {"gpu-tiers.dev/tier": None}}, "metadata.labels[gpu-tiers.dev/tier]: can't change"),
    "a gang": ({"annotations": {"gpu-tiers.dev/gang": "x"}}, "metadata.annotations[gpu-tiers.dev/gang]: can't change"),
}


def test_what_its_place_in_the_line_rests_on_does_not_change(held: Pods) -> None:
    for what, (metadata, refusal) in MOVES.items():
        assert refusal in held.patch(MALLORY, {"metadata": metadata}).stderr, what
    label = {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-training"}}}
    by_status = held.patch(ROOT, label, part="status")
    assert MOVES["a tier"][1] in by_status.stderr, "a status brings labels too"
    note = {"metadata": {"labels": {"team": "vision"}, "annotations": {"note": "1"}}}
    assert not held.patch(MALLORY, note).code
    assert held.gates() == ["example.com/other", GATE]


def test_controllers_of_kubernetes_may_adopt_it(held: Pods) -> None:
    answer = held.patch(COLLECTOR, {"metadata": {"ownerReferences": [OWNER]}}, dry_run=True)
    assert not answer.code, answer.stderr
    assert held.gates() == ["example.com/other", GATE]


def test_pods_that_nobody_holds_are_nobodys_business(pods: Pods) -> None:
    free = gated("free", "example.com/other")
    del free["spec"]["containers"][0]["resources"]
    pods.create(free)
    change = {"metadata": {"annotations": {"example.com/gang": "x"}}, "spec": {"schedulingGates": None}}
    assert not pods.patch(MALLORY, change, name="free").code
