"""Nobody but gpu-tiers opens the gate of a pod that waits for quota; the API server sees to it by itself."""

import json
from collections.abc import Callable, Iterator

import pytest

from localcluster import Result
from localcluster.waiting import wait_until

from .installed import Installed, Tree, gpu_pod

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("full")]

GATE = "gpu-tiers.dev/quota"
MALLORY = ("--as=mallory",)
ROOT = ("--as=root", "--as-group=system:masters")
COLLECTOR = (
    "--as=system:serviceaccount:kube-system:generic-garbage-collector",
    "--as-group=system:serviceaccounts:kube-system",
    "--as-group=system:authenticated",
)
REFUSAL = "spec.schedulingGates: gpu-tiers.dev/quota is opened by gpu-tiers when the tenant's quota has room; leave it"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "0c5e1b1a-5f0c-4e0c-9d5c-000000000001"}

Ask = Callable[..., Result]


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


@pytest.fixture
def ask(installed: Installed, namespace: str) -> Ask:
    """kubectl in a namespace where mallory has the role `edit`."""
    installed.cluster.kubectl(
        "create", "rolebinding", "mallory", "--clusterrole=edit", "--user=mallory", f"--namespace={namespace}"
    )

    def kubectl(*arguments: str, **options: str) -> Result:
        return installed.cluster.kubectl(*arguments, f"--namespace={namespace}", check=False, **options)

    return kubectl


@pytest.fixture
def pod(ask: Ask) -> Iterator[str]:
    """A queued pod with two gates."""
    assert not ask("create", "-f", "-", input=json.dumps(gated("held", "example.com/other", GATE))).code
    wait_until(lambda: REFUSAL in patch(ask, *MALLORY, change=WITHOUT, dry="server").stderr, 30, "the guard")
    yield "held"
    ask("delete", "pod", "held", "--grace-period=0", "--force")


WITHOUT: Tree = {"spec": {"schedulingGates": None}}


def patch(ask: Ask, *arguments: str, change: object, dry: str = "none") -> Result:
    return ask("patch", "pod", "held", *arguments, f"--dry-run={dry}", "-p", json.dumps(change))


def gates(ask: Ask, name: str = "held") -> list[str]:
    found = ask("get", "pod", name, "-o=json").json()
    return [each["name"] for each in found["spec"].get("schedulingGates", [])]


BY_NAME = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
PATCHES: dict[str, tuple[str, object]] = {
    "a strategic patch": ("strategic", BY_NAME),
    "a strategic patch of all gates": ("strategic", WITHOUT),
    "a merge patch": ("merge", {"spec": {"schedulingGates": [{"name": "example.com/other"}]}}),
    "a JSON patch": ("json", [{"op": "remove", "path": "/spec/schedulingGates/1"}]),
}


@pytest.mark.parametrize("who", [MALLORY, ROOT, COLLECTOR], ids=["edit", "an administrator", "a controller"])
def test_no_patch_opens_it(ask: Ask, pod: str, who: tuple[str, ...]) -> None:
    for what, (kind, change) in PATCHES.items():
        answer = patch(ask, f"--type={kind}", *who, change=change)
        assert REFUSAL in answer.stderr, what
    assert gates(ask, pod) == ["example.com/other", GATE]


def test_neither_does_replace(ask: Ask, pod: str) -> None:
    found = ask("get", "pod", pod, "-o=json").json()
    del found["spec"]["schedulingGates"]
    del found["metadata"]["resourceVersion"]  # the leader may write why it waits just now
    assert REFUSAL in ask("replace", "-f", "-", *MALLORY, input=json.dumps(found)).stderr


@pytest.mark.parametrize(
    "how",
    [("--server-side",), ("--server-side", "--field-manager=gpu-tiers"), ("--server-side=false",)],
    ids=["server-side", "in our name", "client-side"],
)
def test_neither_does_apply(ask: Ask, pod: str, how: tuple[str, ...]) -> None:
    """Also of a pod whose gate belongs to whoever applies."""
    applied = gated("applied")
    assert not ask("apply", *how, "-f", "-", *MALLORY, input=json.dumps(applied)).code
    del applied["spec"]["schedulingGates"]
    assert REFUSAL in ask("apply", *how, "-f", "-", *MALLORY, input=json.dumps(applied)).stderr
    assert gates(ask, "applied") == [GATE]
    assert pod == "held"


def test_subresources_leave_the_gate_where_it_is(ask: Ask, pod: str, namespace: str) -> None:
    for subresource in ("status", "resize", "ephemeralcontainers"):
        patch(ask, f"--subresource={subresource}", "--type=merge", *ROOT, change=WITHOUT)
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"name": "node-1"}}
    path = f"--raw=/api/v1/namespaces/{namespace}/pods/{pod}/binding"
    assert ask("create", path, "-f", "-", *ROOT, input=json.dumps(binding)).code
    assert gates(ask, pod) == ["example.com/other", GATE]


def test_gpu_tiers_opens_it_and_others_their_own_gates(ask: Ask, pod: str) -> None:
    """The webhook of these tests is who runs them."""
    other = {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/other"}]}}
    assert not patch(ask, "--type=strategic", *MALLORY, change=other).code
    assert gates(ask, pod) == [GATE]
    assert not patch(ask, "--type=strategic", change=BY_NAME).code
    assert gates(ask, pod) == []


MOVES: dict[str, tuple[Tree, str]] = {
    "an owner": (
        {"ownerReferences": [OWNER]},
        "metadata.ownerReferences: can't change while the pod has the gate",
    ),
    "a tier": (
        {"labels": {"gpu-tiers.dev/tier": "gpu-training"}},
        "write the tier that you want on its workload and delete the pod, or create a pod without a workload again",
    ),
    "no tier": ({"labels": {"gpu-tiers.dev/tier": None}}, "metadata.labels[gpu-tiers.dev/tier]: can't change"),
    "a gang": ({"annotations": {"gpu-tiers.dev/gang": "x"}}, "metadata.annotations[gpu-tiers.dev/gang]: can't change"),
}


def test_what_its_place_in_the_line_rests_on_does_not_change(ask: Ask, pod: str) -> None:
    for what, (metadata, refusal) in MOVES.items():
        assert refusal in patch(ask, "--type=merge", *MALLORY, change={"metadata": metadata}).stderr, what
    label = {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-training"}}}
    by_status = patch(ask, "--subresource=status", "--type=merge", *ROOT, change=label)
    assert MOVES["a tier"][1] in by_status.stderr, "a status brings labels too"
    note = {"metadata": {"labels": {"team": "vision"}, "annotations": {"note": "1"}}}
    assert not patch(ask, "--type=merge", *MALLORY, change=note).code
    assert gates(ask, pod) == ["example.com/other", GATE]


def test_controllers_of_kubernetes_may_adopt_it(ask: Ask, pod: str) -> None:
    adopted = {"metadata": {"ownerReferences": [OWNER]}}
    answer = patch(ask, "--type=merge", *COLLECTOR, change=adopted, dry="server")
    assert not answer.code, answer.stderr
    assert gates(ask, pod) == ["example.com/other", GATE]


def test_pods_that_nobody_holds_are_nobodys_business(ask: Ask) -> None:
    free = gated("free", "example.com/other")
    del free["spec"]["containers"][0]["resources"]
    assert not ask("create", "-f", "-", input=json.dumps(free)).code
    change = json.dumps({"metadata": {"annotations": {"example.com/gang": "x"}}, "spec": {"schedulingGates": None}})
    assert not ask("patch", "pod", "free", "--type=merge", *MALLORY, "-p", change).code
