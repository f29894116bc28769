"""Changes that people make to a ledger in the TenantQuotas' statuses, and what they see of it."""

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from localcluster.for_tests import announce
from tests.builders import tenant_quota

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

ALPHA = "ledger-alpha"
BETA = "ledger-beta"


@pytest.fixture
def tenants(installed: Installed) -> Iterator[Callable[..., None]]:
    """Makes tenants, and takes them away."""
    made: list[str] = []

    def make(name: str, namespace: str, **spec: object) -> None:
        made.append(name)
        installed.tenant(name, namespace, **spec)

    yield make
    installed.api.delete(*(f"tenantquota/{name}" for name in made))


def let_in(installed: Installed, pod: Tree, namespace: str) -> None:
    answer = installed.create(pod, namespace)
    assert answer.code == 0, answer.stderr


def patch_status(installed: Installed, name: str, patch: object, form: str = "merge") -> None:
    installed.api.patch(f"tenantquota/{name}", patch, form=form, part="status")


def account(installed: Installed, name: str) -> Tree:
    return dict(installed.get(f"tenantquota/{name}", "")["status"]["ledger"])


def exact(installed: Installed, name: str) -> str:
    """The status and the reason of the condition Exact."""
    found = installed.condition(name, "Exact")
    return f"{found.get('status')} {found.get('reason')}"


def test_a_tenant_a_namespace_and_its_pods_in_one_apply(installed: Installed, pytestconfig: pytest.Config) -> None:
    name = f"new-{uuid.uuid4().hex[:8]}"
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}},
        tenant_quota(name, name, quotas=[{"gpus": 3}]),
        *({**(pod := gpu_pod(f"pod-{i}")), "metadata": {**pod["metadata"], "namespace": name}} for i in range(4)),
    ]
    began = time.monotonic()
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    answer = installed.cluster.kubectl("apply", "--server-side", "-f", "-", input=manifest, check=False)
    announce(pytestconfig, f"ledger: a tenant, its namespace and 4 pods in one apply: {time.monotonic() - began:.1f} s")
    try:
        assert answer.stdout.count("pod/pod-") == 3
        assert "the total is at 3 of 3 GPUs; this pod asks for 1" in answer.stderr
        installed.eventually(lambda: installed.usage(name) == "total 3/3", "the usage")
    finally:
        installed.api.delete(f"tenantquota/{name}")
        installed.api.delete(f"namespace/{name}", wait=False)


def test_usage_is_written_once_and_again_when_it_changes(
    installed: Installed, namespace: str, tenants: Callable[..., None]
) -> None:
    def version() -> str:
        return str(installed.get(f"tenantquota/{ALPHA}", "")["metadata"]["resourceVersion"])

    def shows(usage: str) -> None:
        installed.eventually(lambda: installed.usage(ALPHA) == usage, f"the usage {usage}")

    tenants(ALPHA, namespace, quotas=[{"tier": "gpu-training", "gpus": "6"}, {"gpus": "16"}])
    let_in(installed, gpu_pod("four", 4, tier="gpu-training"), namespace)
    shows("gpu-training 4/6, total 4/16")
    first = installed.get(f"tenantquota/{ALPHA}", "")["status"]
    assert first["usage"][0] == {"tier": "gpu-training", "hard": "6", "used": "4", "reserved": "0"}
    assert (first["observedGeneration"], installed.condition(ALPHA, "Ready")["status"]) == (1, "True")
    written = version()
    time.sleep(1.5)
    assert version() == written
    let_in(installed, gpu_pod("one", 1, tier="gpu-training"), namespace)
    shows("gpu-training 5/6, total 5/16")
    assert installed.get(f"tenantquota/{ALPHA}", "")["status"]["conditions"] == first["conditions"]
    shown = installed.cluster.kubectl("get", "tenantquota", ALPHA).stdout
    assert re.search(r"gpu-training 5/6, total 5/16\s+True", shown)


def test_an_unknown_tier_and_an_older_quota_are_named(
    installed: Installed, namespace: str, tenants: Callable[..., None]
) -> None:
    def becomes(name: str, status: str, reason: str) -> str:
        """The message of the condition Ready, once it is so."""

        def reached() -> bool:
            found = installed.condition(name, "Ready")
            return (found.get("status"), found.get("reason")) == (status, reason)

        installed.eventually(reached, f"Ready {status} {reason} of {name}")
        return str(installed.condition(name, "Ready")["message"])

    tenants(ALPHA, namespace, maxTier="gpu-batch")
    time.sleep(1.1)  # creationTimestamp counts whole seconds
    installed.api.apply(tenant_quota(BETA, namespace))
    beaten = becomes(BETA, "False", "Overlap")
    assert f"TenantQuota {ALPHA} selects {namespace} too; {ALPHA} is older and applies there" in beaten
    gone = tenant_quota(ALPHA, namespace, maxTier="gpu-gold")
    gone["metadata"]["annotations"] = {"gpu-tiers.dev/checked-names": "gpu-gold"}  # by a policy that never came
    installed.api.apply(gone)
    mistaken = becomes(ALPHA, "False", "UnknownTier")
    assert mistaken.startswith('spec.maxTier: unknown tier "gpu-gold"; known tiers: gpu-training, ')
    installed.api.delete(f"tenantquota/{ALPHA}")
    installed.api.wait_for("Ready", f"tenantquota/{BETA}")
    installed.api.delete(f"tenantquota/{BETA}")


def test_a_create_whose_name_is_taken_books_nothing(
    installed: Installed, namespace: str, tenants: Callable[..., None]
) -> None:
    """Whatever it says of its name, and also while the pod that bears the name is being deleted."""
    tenants(ALPHA, namespace, quotas=[{"gpus": "2"}])
    there = gpu_pod("there", 0)
    there["metadata"]["finalizers"] = ["example.com/stays"]
    let_in(installed, there, namespace)
    again = gpu_pod("there", 2)
    again["metadata"]["generateName"] = "th"
    for _ in ("there", "in deletion"):
        refused = installed.create(again, namespace).stderr
        assert installed.usage(ALPHA) == "total 0/2"
        assert "(AlreadyExists): " in refused
        assert 'denied the request: pods "there" already exists' in refused
        installed.api.delete("pod/there", namespace=namespace, wait=False)
    installed.api.patch("pod/there", {"metadata": {"finalizers": None}}, namespace)
    let_in(installed, again, namespace)


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"status": None}, id="emptied"),
        pytest.param({"status": {"ledger": {"held": [], "reservations": []}}}, id="edited"),
        pytest.param({"status": {"ledger": {"term": "somebody/else"}}}, id="another term"),
    ],
)
def test_an_edited_status_gives_nothing_away(
    installed: Installed, namespace: str, tenants: Callable[..., None], edit: Tree
) -> None:
    tenants(ALPHA, namespace, quotas=[{"gpus": "2"}])
    let_in(installed, gpu_pod("one", 2), namespace)
    patch_status(installed, ALPHA, edit)
    refused = installed.create(gpu_pod("two"), namespace)
    assert "the total is at 2 of 2 GPUs" in refused.stderr
    installed.eventually(
        lambda: (installed.usage(ALPHA), exact(installed, ALPHA)) == ("total 2/2", "True Counted"), "the repair"
    )


def test_a_copy_of_an_older_status_is_no_account(
    installed: Installed, namespace: str, tenants: Callable[..., None]
) -> None:
    tenants(ALPHA, namespace, quotas=[{"gpus": "2"}])
    installed.eventually(lambda: namespace in account(installed, ALPHA).get("namespaces", {}), "the namespace")
    old = account(installed, ALPHA)
    let_in(installed, gpu_pod("one", 2), namespace)
    installed.eventually(lambda: installed.usage(ALPHA) == "total 2/2", "the count")
    patch_status(installed, ALPHA, [{"op": "replace", "path": "/status/ledger", "value": old}], "json")
    assert installed.create(gpu_pod("two"), namespace).code == 1
    installed.eventually(lambda: installed.usage(ALPHA) == "total 2/2", "the repair")


def test_a_tenant_that_is_made_again_counts_what_is_there(
    installed: Installed, namespace: str, tenants: Callable[..., None]
) -> None:
    tenants(ALPHA, namespace, quotas=[{"gpus": "2"}])
    let_in(installed, gpu_pod("one", 2), namespace)
    installed.api.delete(f"tenantquota/{ALPHA}")
    installed.tenant(ALPHA, namespace, quotas=[{"gpus": "2"}])
    assert "the total is at 2 of 2 GPUs" in installed.create(gpu_pod("two"), namespace).stderr


def test_a_namespace_takes_its_pods_to_another_tenant(
    installed: Installed, namespace: str, tenants: Callable[..., None]
) -> None:
    def labelled(team: str) -> None:
        installed.api.label(f"namespace/{namespace}", {"example.com/team": team})

    labelled("alpha")
    for name, team in ((ALPHA, "alpha"), (BETA, "beta")):
        selector = {"matchLabels": {"example.com/team": team}}
        tenants(name, namespace, quotas=[{"gpus": "2"}], namespaceSelector=selector)
    let_in(installed, gpu_pod("one", 2), namespace)
    for team, name in (("beta", BETA), ("alpha", ALPHA)):
        labelled(team)
        installed.eventually(lambda name=name: installed.usage(name) == "total 2/2", "the usage of the new tenant")  # type: ignore[misc]
        other = ALPHA if name == BETA else BETA
        installed.eventually(lambda other=other: installed.usage(other) == "total 0/2", "that of the old one")  # type: ignore[misc]
        assert f"tenant {name}: the total is at 2 of 2" in installed.create(gpu_pod("two"), namespace).stderr


def test_an_account_of_a_later_version_is_left_alone(
    installed: Installed, namespace: str, tenants: Callable[..., None]
) -> None:
    tenants(ALPHA, namespace, quotas=[{"gpus": "2"}])
    installed.eventually(lambda: namespace in account(installed, ALPHA).get("namespaces", {}), "the namespace")
    patch_status(installed, ALPHA, {"status": {"ledger": {"format": 2, "gangs": [{"uid": "g1"}]}}})
    refused = installed.create(gpu_pod("one"), namespace)
    assert "can't decide now, try again: the ledger of tenant ledger-alpha is of a later version" in refused.stderr
    assert account(installed, ALPHA)["gangs"] == [{"uid": "g1"}]
    patch_status(installed, ALPHA, {"status": {"ledger": None}})
    let_in(installed, gpu_pod("one"), namespace)
