"""The rights to evict pods and to reserve nodes: given where the policy asks for them, bounded by the API server."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from localcluster import Cluster
from localcluster.waiting import wait_until

from .asking import pod
from .conftest import Render
from .helm import Chart, Manifest

ACCOUNT = "system:serviceaccount:gpu-tiers:gpu-tiers"
ON = {"policy": {"preemption": {"dra": "On"}}}
KEY = "gpu-tiers.dev/reserved"
POLICIES = ("gpu-tiers-preemption", "gpu-tiers-reserved-nodes")
OPENS_GATES = "gpu-tiers-open-gates"
OPENER = f"system:serviceaccount:gpu-tiers:{OPENS_GATES}"
"""The account of the Job at an uninstall."""
ROLES = ("gpu-tiers", OPENS_GATES)
MARK = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByGpuTiers"}
"""Without a time kube-controller-manager takes it back at once: it does so after two minutes."""


STORAGE = ("persistentvolumeclaims", "persistentvolumes", "storageclasses", "csidrivers", "csinodes")


def verbs(chart: Chart, resource: str, role: str = "gpu-tiers") -> set[str]:
    rules = chart.one("ClusterRole", role)["rules"]
    return {verb for rule in rules if resource in rule.get("resources", ()) for verb in rule["verbs"]}


@pytest.mark.parametrize(
    ("dra", "given"), [("Off", False), (False, False), ("On", True), (True, True), ("Remove", True)]
)
def test_they_are_given_where_the_policy_asks_for_them(render: Render, dra: object, given: bool) -> None:
    """YAML takes a bare On for true, and Off for false."""
    chart = render(policy={"preemption": {"dra": dra}})
    assert ("delete" in verbs(chart, "pods"), "patch" in verbs(chart, "nodes")) == (given, given)
    for each in STORAGE:
        assert verbs(chart, each) == ({"list", "watch"} if given else set()), each
        assert verbs(chart, each, "gpu-tiers-cluster-reader") == ({"get", "list"} if given else set()), each
    names = {each["metadata"]["name"] for each in chart if each["kind"] == "ValidatingAdmissionPolicy"}
    assert (set(POLICIES) <= names) == given
    arguments = chart.one("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert ("--exempt-namespace=kube-system" in arguments) == given


def test_nobody_may_without_asking(render: Render) -> None:
    chart = render()
    assert "delete" not in verbs(chart, "pods")
    assert verbs(chart, "nodes") == {"list", "watch"}


@pytest.fixture(scope="module")
def bounded(cluster: Cluster, render: Render) -> Iterator[Cluster]:
    """A cluster with the rights and with what bounds them, a tier's classes, a node, and pods of two tiers."""
    api, chart = cluster.api, render(**ON)
    wanted = {*POLICIES, "gpu-tiers-own-account", "gpu-tiers-queued-status", OPENS_GATES}
    api.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-tiers"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "evicting"}},
        *(each for each in chart if each["kind"] == "PriorityClass"),
        *(each for each in chart if each["kind"].startswith("Validating") and each["metadata"]["name"] in wanted),
        *(each for each in chart if each["metadata"]["name"] in ROLES and each["kind"].startswith("ClusterRole")),
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "reserved-one"}, "spec": {"taints": [OTHER]}},
    )
    wait_until(lambda: api.has("serviceaccount/default", "evicting"), 60, "its ServiceAccount")
    for name, tier in (("low", "gpu-batch"), ("marked", "gpu-batch"), ("high", "gpu-training"), ("none", "")):
        made = pod(priorityClassName=tier, **ON_NODE) if tier else pod(**ON_NODE)
        api.create(made | {"metadata": {"name": name}}, "evicting")
    brief = pod(priorityClassName="gpu-batch", terminationGracePeriodSeconds=0, **ON_NODE)
    api.create(brief | {"metadata": {"name": "brief"}}, "evicting")
    api.create(pod(priorityClassName="gpu-batch") | {"metadata": {"name": "exempt"}}, "kube-system")
    # kubectl reads what it patches, the webhook does not.
    cluster.kubectl("create", "clusterrole", "reads-more", "--verb=get", "--resource=pods,pods/status,nodes")
    users = (f"--user={each}" for each in (ACCOUNT, OPENER))
    cluster.kubectl("create", "clusterrolebinding", "reads-more", "--clusterrole=reads-more", *users)
    mine = {"metadata": {"labels": {"a": "b"}}}
    for account in (ACCOUNT, OPENER):
        wait_until(lambda who=account: "and nothing" in changed(cluster, mine, who), 60, "what bounds it")
    yield cluster
    api.delete("node/reserved-one", "clusterrole/reads-more", "clusterrolebinding/reads-more")
    for name in ROLES:
        api.delete(f"clusterrole/{name}", f"clusterrolebinding/{name}")
    for name in wanted:
        api.delete(f"validatingadmissionpolicy/{name}", f"validatingadmissionpolicybinding/{name}")
    cluster.kubectl("delete", "pod", "exempt", "--namespace=kube-system", "--grace-period=0", "--force")
    api.delete("pods", namespace="evicting", seconds=0, wait=False)
    api.delete("namespace/evicting", wait=False)
    api.delete("namespace/gpu-tiers")
    cluster.kubectl(
        "delete", "priorityclasses", *(each["metadata"]["name"] for each in chart if each["kind"] == "PriorityClass")
    )


ON_NODE: Manifest = {"nodeName": "reserved-one", "tolerations": [{"operator": "Exists"}]}
OTHER = {"key": "example.com/repair", "value": "x", "effect": "NoSchedule"}
OURS = {"key": KEY, "value": "gpu-training", "effect": "NoSchedule"}


def patch(change: Manifest) -> str:
    return f"--patch={json.dumps(change)}"


def status(namespace: str, name: str) -> tuple[str, ...]:
    return ("patch", "pod", name, "--subresource=status", f"--namespace={namespace}", "--type=strategic")


def changed(cluster: Cluster, change: Manifest, account: str = ACCOUNT) -> str:
    """What the API server says of a change of the node."""
    command = ("patch", "node", "reserved-one", "--type=merge", patch(change), "--dry-run=server", f"--as={account}")
    return cluster.kubectl(*command, check=False).stderr


@pytest.mark.apiserver
@pytest.mark.parametrize("account", [ACCOUNT, OPENER], ids=["the leader", "the Job at an uninstall"])
def test_of_a_node_it_may_change_the_reservation_and_nothing_else(bounded: Cluster, account: str) -> None:
    told = {"gpu-tiers.dev/reservation": "{}", "gpu-tiers.dev/failed-preemptions": "{}"}
    note = {"metadata": {"annotations": told, "labels": {KEY: "gpu-training"}}}
    assert changed(bounded, note | {"spec": {"taints": [OTHER, OURS]}}, account) == ""
    assert changed(bounded, {"spec": {"taints": [OURS, OTHER]}}, account) == ""
    refused: dict[str, Manifest] = {
        "a cordon": {"spec": {"unschedulable": True}},
        "another's taint gone": {"spec": {"taints": [OURS]}},
        "another taint": {"spec": {"taints": [OTHER, {"key": "mine", "effect": "NoSchedule"}]}},
        "an eviction of all": {"spec": {"taints": [OTHER, OURS | {"effect": "NoExecute"}]}},
        "two of them": {"spec": {"taints": [OTHER, OURS, OURS | {"effect": "PreferNoSchedule"}]}},
        "a label": {"metadata": {"labels": {"a": "b"}}},
        "another annotation": {"metadata": {"annotations": {"a": "b"}}},
        "a finalizer": {"metadata": {"finalizers": ["example.com/x"]}},
        "another provider": {"spec": {"providerID": "x"}},
    }
    for what, change in refused.items():
        assert "may change the taint and the label gpu-tiers.dev/reserved of nodes" in changed(
            bounded, change, account
        ), what


@pytest.mark.apiserver
def test_the_job_at_an_uninstall_changes_no_pod_but_its_gate(bounded: Cluster) -> None:
    api = bounded.api
    api.create(pod(schedulingGates=[{"name": "gpu-tiers.dev/quota"}]) | {"metadata": {"name": "gated"}}, "evicting")

    def made(change: Manifest) -> str:
        command = ("patch", "pod", "gated", "--namespace=evicting", "--type=strategic", patch(change))
        return bounded.kubectl(*command, "--dry-run=server", f"--as={OPENER}", check=False).stderr

    assert made({"spec": {"schedulingGates": [{"name": "gpu-tiers.dev/quota", "$patch": "delete"}]}}) == ""
    (container,) = api.get("pod/gated", "evicting")["spec"]["containers"]
    image = {"spec": {"containers": [{"name": container["name"], "image": "mallory.example.com/x"}]}}
    for change in (image, {"metadata": {"labels": {"a": "b"}}}):
        assert "may open the scheduling gate gpu-tiers.dev/quota" in made(change)


@pytest.mark.apiserver
def test_it_may_mark_pods_of_lower_tiers_and_change_nothing_else_of_their_status(bounded: Cluster) -> None:
    def marked(change: Manifest, name: str = "low", namespace: str = "evicting") -> str:
        as_webhook = ("--dry-run=server", f"--as={ACCOUNT}")
        return bounded.kubectl(*status(namespace, name), patch(change), *as_webhook, check=False).stderr

    mark = {"status": {"conditions": [MARK]}}
    assert marked(mark) == ""
    refusal = "mark pods of lower tiers as preempted, and nothing else"
    assert refusal in marked(mark, "high"), "the highest tier"
    assert refusal in marked(mark, "none"), "no tier"
    assert refusal in marked(mark, "exempt", "kube-system")
    refused: dict[str, Manifest] = {
        "an end": {"status": {"phase": "Failed", "conditions": [MARK]}},
        "another reason": {"status": {"conditions": [MARK | {"reason": "PreemptionByScheduler"}]}},
        "another condition": {"status": {"conditions": [MARK, {"type": "Ready", "status": "False"}]}},
        "an address": {"status": {"podIP": "10.0.0.1", "conditions": [MARK]}},
        "a label": {"metadata": {"labels": {"a": "b"}}, "status": {"conditions": [MARK]}},
    }
    for what, change in refused.items():
        assert refusal in marked(change), what


@pytest.mark.apiserver
def test_it_may_delete_pods_that_it_has_marked_and_no_others(bounded: Cluster) -> None:
    def deleted(name: str, *more: str, namespace: str = "evicting") -> str:
        command = ("delete", "pod", name, f"--namespace={namespace}", "--dry-run=server", f"--as={ACCOUNT}", *more)
        return bounded.kubectl(*command, check=False).stderr

    # The controller manager takes a mark back that is two minutes old.
    mark = MARK | {"lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    for name in ("marked", "high", "none", "brief"):
        bounded.kubectl(*status("evicting", name), patch({"status": {"conditions": [mark]}}))
    assert deleted("marked") == ""
    refusal = "may delete pods of lower tiers that it has marked as preempted"
    for name in ("low", "high", "none"):
        assert refusal in deleted(name), name
    assert refusal in deleted("exempt", namespace="kube-system")
    assert refusal in deleted("marked", "--grace-period=1"), "another grace than its own"
    assert refusal in deleted("marked", "--grace-period=0", "--force")
    assert deleted("brief", "--grace-period=1") == ""
    assert refusal in deleted("brief"), "at once: its devices would be given away while its containers run"
    assert bounded.kubectl("auth", "can-i", "deletecollection", "pods", "-A", f"--as={ACCOUNT}", check=False).code


@pytest.mark.apiserver
def test_nobody_gets_a_toleration_that_the_webhook_does_not_give(bounded: Cluster) -> None:
    def made(tier: str, **toleration: str) -> str:
        one = {"key": KEY, "operator": "Equal", "effect": "NoSchedule"} | toleration
        tree = pod(priorityClassName=tier, tolerations=[one]) if tier else pod(tolerations=[one])
        return bounded.api.create(tree, "evicting", dry_run=True, check=False).stderr

    refusal = "leave its toleration out"
    assert made("gpu-batch", value="gpu-batch") == ""
    assert made("gpu-training", value="gpu-batch") == ""
    assert refusal in made("gpu-batch", value="gpu-training"), "a higher tier's"
    assert refusal in made("gpu-interactive", value="gpu-batch")
    assert refusal in made("", value="gpu-batch"), "no tier"
    assert refusal in made("gpu-training", operator="Exists")
    assert refusal in made("gpu-training", value="gpu-batch", effect="")
    more = [{"op": "add", "path": "/spec/tolerations/-", "value": {"key": KEY, "operator": "Exists"}}]
    command = ("patch", "pod", "low", "--namespace=evicting", "--type=json", f"--patch={json.dumps(more)}")
    assert refusal in bounded.kubectl(*command, "--dry-run=server", check=False).stderr, "added to a pod that exists"
