"""The real webhook beside a real API server, with no more rights than the chart's ServiceAccount has."""

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import pytest
import yaml

from installation.workload_crds import WorkloadKind, crd
from localcluster import Cluster
from localcluster.crds import add_crds, delete_crd
from localcluster.ports import free_ports
from localcluster.waiting import wait_until

from .asking import GPU, pod, try_create, wait_until_gpu_pods_are
from .conftest import Render, wiped
from .helm import CHART, Manifest
from .release import Release
from .test_match_conditions import podgroup_version
from .test_objects import FLAVORS

pytestmark = pytest.mark.apiserver

ACCOUNT = "system:serviceaccount:gpu-tiers:gpu-tiers"
TRAINING = {"gpu-tiers.dev/tier": "gpu-training"}
WORKLOAD = WorkloadKind("kueue.x-k8s.io", "Workload", "workloads", ("v1beta2",))
QUEUED = f"{WORKLOAD.plural}.{WORKLOAD.group}"
RIGHTS = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
BOUND, OWN, STATUS = "gpu-tiers-own-configurations", "gpu-tiers-own-account", "gpu-tiers-queued-status"
"""What bounds the rights to patch its configurations, pods, and their status."""
ALPHA: Manifest = {
    "name": "alpha",
    "spec": {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "research"}},
        "quotas": [{"tier": "gpu-training", "gpus": "6"}],
    },
}


@dataclass(frozen=True)
class Webhook:
    """The address of a webhook, and the file of the CA that signed its certificate."""

    port: int
    metrics_port: int
    page_port: int
    ca: Path
    log: Path
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def values(self) -> Manifest:
        """Return the chart's values for this webhook."""
        return {"url": f"https://127.0.0.1:{self.port}/{'0' * 32}"}


@pytest.fixture(scope="module")
def release(cluster: Cluster, home: Path) -> Iterator[Release]:
    """One release for all tests here."""
    with wiped(Release(cluster, home)) as release:
        yield release


@pytest.fixture(scope="module")
def webhook(
    release: Release, namespace: str, render: Render, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Webhook]:
    """An enforcing installation whose webhook runs beside the API server, as the chart's ServiceAccount."""
    assert namespace == "research"
    tmp_path = tmp_path_factory.mktemp("webhook")
    port, metrics_port, page_port = free_ports(3)
    webhook = Webhook(port, metrics_port, page_port, tmp_path / "ca.crt", tmp_path / "log")
    release.install(mode="Enforce", tenants=[ALPHA], policy=FLAVORS, webhook=webhook.values)
    rights = [each for each in render(policy=FLAVORS) if is_of_its_rights(each)]
    release.cluster.api.apply(*rights)
    wait_until_gpu_pods_are(release.cluster, refused=True)  # nobody serves yet, so the API server has the configuration
    with serving(release, webhook, tmp_path) as process:
        wait_until_ready(webhook)
        wait_until_gpu_pods_are(release.cluster, refused=False)
        secret = release.get("secret", "gpu-tiers-tls")
        webhook.ca.write_bytes(base64.b64decode(secret["data"]["ca.crt"]))
        yield replace(webhook, process=process)
    release.cluster.api.delete("clusterrole/gpu-tiers", "clusterrolebinding/gpu-tiers")
    release.cluster.api.delete(
        f"validatingadmissionpolicy/{BOUND}",
        f"validatingadmissionpolicybinding/{BOUND}",
        f"validatingadmissionpolicy/{OWN}",
        f"validatingadmissionpolicybinding/{OWN}",
        f"validatingadmissionpolicy/{STATUS}",
        f"validatingadmissionpolicybinding/{STATUS}",
    )
    release.cluster.api.delete(
        "serviceaccount/gpu-tiers", "role/gpu-tiers", "rolebinding/gpu-tiers", namespace="gpu-tiers"
    )


@contextmanager
def serving(release: Release, webhook: Webhook, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    config = release.get("configmap", "gpu-tiers")
    (folder / "policy.yaml").write_text(config["data"]["policy.yaml"])
    (folder / "kubeconfig").write_text(kubeconfig_of_the_service_account(release.cluster))
    command = [str(Path(sys.executable).parent / "gpu-tiers"), "serve", "--host=127.0.0.1", "--dns-name=127.0.0.1"]
    command += [f"--policy={folder / 'policy.yaml'}", f"--kubeconfig={folder / 'kubeconfig'}"]
    command += [f"--port={webhook.port}", f"--metrics-port={webhook.metrics_port}"]
    command += [f"--page-tls-port={webhook.page_port}"]
    with webhook.log.open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield process
        finally:
            process.terminate()


def kubeconfig_of_the_service_account(cluster: Cluster) -> str:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    token = cluster.api.token("gpu-tiers", "gpu-tiers")
    (user,) = config["users"]
    user["user"] = {"token": token}
    return yaml.safe_dump(config)


def wait_until_ready(webhook: Webhook) -> None:
    deadline = time.monotonic() + 240
    while not is_ready(webhook):
        assert time.monotonic() < deadline, webhook.log.read_text()
        time.sleep(0.2)


def is_ready(webhook: Webhook) -> bool:
    connection = HTTPConnection("127.0.0.1", webhook.metrics_port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def test_the_charts_rights_are_enough(release: Release, webhook: Webhook, namespace: str) -> None:
    eight = pod(labels=TRAINING, main={"resources": {"limits": {"nvidia.com/gpu": "8"}}})
    answer = try_create(release.cluster, namespace, eight)
    said = "tenant alpha: gpu-training allows 6 GPUs; this pod asks for 8."
    assert said in answer.stderr, f"{answer}\n{webhook.log.read_text()}"

    one = pod(labels=TRAINING, main=GPU)
    assert try_create(release.cluster, namespace, one).json()["spec"]["priority"] == 1000

    release.cluster.api.wait_for("Ready", "tenantquota/alpha")
    assert "forbidden" not in webhook.log.read_text().lower()


TAKEN_OVER = {
    "called elsewhere": [{"op": "replace", "path": "/webhooks/0/clientConfig", "value": {"url": "https://x.example"}}],
    "called at another path": [
        {"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": f"https://127.0.0.1/{'1' * 32}/mutate"}
    ],
    "asked about everything": [{"op": "replace", "path": "/webhooks/0/rules/0/resources", "value": ["*/*"]}],
    "asked without a condition": [{"op": "remove", "path": "/webhooks/0/matchConditions"}],
    "asked everywhere": [{"op": "remove", "path": "/webhooks/0/namespaceSelector"}],
    "asked about some objects": [
        {"op": "add", "path": "/webhooks/0/objectSelector", "value": {"matchLabels": {"a": "b"}}}
    ],
    "never waited for": [{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 1}],
    "one entry less": [{"op": "remove", "path": "/webhooks/0"}],
    "no entry": [{"op": "remove", "path": "/webhooks"}],
    "in another order": [{"op": "move", "from": "/webhooks/0", "path": "/webhooks/1"}],
    "of another release": [{"op": "add", "path": "/metadata/labels/app.kubernetes.io~1instance", "value": "x"}],
    "annotated": [{"op": "add", "path": "/metadata/annotations/cert-manager.io~1inject-ca-from", "value": "x/y"}],
    "collected": [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/x"]}],
}


@pytest.mark.parametrize("kind", ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"])
@pytest.mark.usefixtures("webhook")
def test_of_its_configurations_it_may_change_ca_bundle_and_nothing_else(release: Release, kind: str) -> None:
    live = release.get(kind, "zz-gpu-tiers")
    bundle = live["webhooks"][1]["clientConfig"]["caBundle"]

    def patched(*operations: Manifest) -> str:
        asked = {"form": "json", "user": ACCOUNT, "dry_run": True, "check": False}
        return release.cluster.api.patch(f"{kind}/zz-gpu-tiers", operations, **asked).stderr

    refusal = "the webhook's own account may change caBundle and its secret path, and nothing else"
    for what, operations in TAKEN_OVER.items():
        assert refusal in patched(*operations), what
    again = {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}
    assert patched(again) == ""
    assert patched(again, {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}) == ""


@pytest.mark.usefixtures("webhook")
def test_they_are_enough_where_nobody_has_made_the_lease(release: Release) -> None:
    """Argo CD's settings leave Leases out."""
    release.cluster.api.delete("lease/gpu-tiers", namespace="gpu-tiers")
    wait_until(lambda: release.cluster.api.has("lease/gpu-tiers", "gpu-tiers"), 60, "a new Lease")


def test_they_are_enough_for_kubernetes_own_gangs(release: Release, webhook: Webhook, namespace: str) -> None:
    """A PodGroup's template stands in a Workload, and a pod's tier on its PodGroup."""
    version = podgroup_version(release.cluster)
    if version != "scheduling.k8s.io/v1beta1":
        pytest.skip("this cluster serves no PodGroups of 1.37")
    policy = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    template = {"name": "workers", "priorityClassName": "gpu-training", **policy}
    reference = {"workloadRef": {"workloadName": "llm", "templateName": "workers"}}
    for kind, name, spec in (
        ("Workload", "llm", {"podGroupTemplates": [template]}),
        ("PodGroup", "gang", policy | reference),
    ):
        gang = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        release.cluster.api.create(gang, namespace)
    member = pod(main=GPU, schedulingGroup={"podGroupName": "gang"})
    assert try_create(release.cluster, namespace, member).json()["spec"]["priority"] == 1000
    assert "forbidden" not in webhook.log.read_text().lower()


def test_they_are_enough_for_events(release: Release, webhook: Webhook, namespace: str) -> None:
    eight = pod(main={"resources": {"limits": {"nvidia.com/gpu": "8"}}}, labels=TRAINING)
    assert release.cluster.api.create(eight, namespace, check=False).code
    of_alpha = {"fieldSelector": "involvedObject.name=alpha"}
    published = lambda: bool(release.cluster.api.get("events", "default", **of_alpha)["items"])  # noqa: E731
    wait_until(published, 240, f"an event, not in {webhook.log}")
    for verb in ("create", "patch", "list", "watch"):
        release.cluster.kubectl("auth", "can-i", verb, "events", "-A", f"--as={ACCOUNT}")
    for verb in ("get", "delete"):
        assert release.cluster.kubectl("auth", "can-i", verb, "events", "-A", f"--as={ACCOUNT}", check=False).code


def test_they_are_enough_to_tell_of_a_policy_that_was_not_taken(release: Release, webhook: Webhook) -> None:
    file = webhook.log.parent / "policy.yaml"
    good = file.read_text()

    def published() -> dict[str, str]:
        return release.get("configmap", "gpu-tiers-active").get("data") or {}

    wait_until(lambda: published().get("in-force.yaml") == good, 60, "the active policy")
    file.write_text(f"{good}\nteirs: []\n")
    try:
        wait_until(
            lambda: published()["problem"] == "teirs: there is no such field; did you mean tiers?", 60, "the problem"
        )
        described = ("describe", "configmap", "gpu-tiers", "--namespace=gpu-tiers")
        said = lambda: release.cluster.kubectl(*described).stdout  # noqa: E731
        wait_until(lambda: "PolicyNotTaken" in said() and "teirs: there is no such field" in said(), 60, "the event")
    finally:
        file.write_text(good)
    wait_until(lambda: not published()["problem"], 60, "its end")
    for verb in ("patch", "update", "delete"):
        own = ("auth", "can-i", verb, "configmaps/gpu-tiers", "--namespace=gpu-tiers", f"--as={ACCOUNT}")
        assert release.cluster.kubectl(*own, check=False).code, "the policy file itself is not its to write"


@pytest.mark.usefixtures("webhook")
def test_a_backstop_needs_a_right_of_its_own(release: Release, namespace: str, render: Render) -> None:
    api = release.cluster.api
    api.patch("tenantquota/alpha", {"spec": {"backstop": "ResourceQuota"}})
    published = "gpu-tiers may not write ResourceQuotas; set the chart's value backstop.enabled to true"

    def events() -> str:
        return json.dumps(api.get("events", "default", fieldSelector="reason=BackstopNotRendered")["items"])

    wait_until(lambda: published in events(), 30, "the event")

    allowed = [each for each in render(policy=FLAVORS, backstop={"enabled": True}) if is_of_its_rights(each)]
    api.apply(*allowed)

    def quotas() -> list[str]:
        return [each["metadata"]["name"] for each in api.get("resourcequotas", namespace)["items"]]

    wait_until(lambda: quotas() == ["gpu-tiers-gpu-training"], 30, "the ResourceQuota")
    api.patch("tenantquota/alpha", {"spec": {"backstop": "None"}})
    wait_until(lambda: not quotas(), 30, "its end")


REWRITTEN = {
    "another image": {"spec": {"containers": [{"name": "main", "image": "registry.example/mine:1"}]}},
    "an early end": {"spec": {"activeDeadlineSeconds": 1}},
    "a label": {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-batch"}}},
    "another annotation": {"metadata": {"annotations": {"a": "b"}}},
    "an annotation less": {"metadata": {"annotations": {"team": None}}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/x"]}},
}


@pytest.mark.usefixtures("webhook")
def test_it_may_tell_what_an_eviction_costs_and_change_nothing_else_and_only_where_the_policy_says_so(
    release: Release, namespace: str, render: Render
) -> None:
    kubectl = release.cluster.kubectl
    theirs = pod(main=GPU, labels=TRAINING) | {"metadata": {"name": "theirs", "annotations": {"team": "alpha"}}}
    queued = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "theirs"}}
    add_crds(release.cluster, crd(WORKLOAD))
    for each in (theirs, queued | {"spec": {"priority": 400}}):
        release.cluster.api.create(each, namespace)

    def patched(change: Manifest, what: str = "pod") -> str:
        kind = "--type=strategic" if what == "pod" else "--type=merge"
        command = ("patch", what, "theirs", f"--namespace={namespace}", kind, "-p", json.dumps(change))
        return kubectl(*command, "--dry-run=server", f"--as={ACCOUNT}", check=False).stderr

    saved = {"metadata": {"annotations": {"volcano.sh/last-checkpoint-time": "2026-11-26T12:00:00Z"}}}
    boost = {"metadata": {"annotations": {"kueue.x-k8s.io/priority-boost": "3"}}}
    refusal = "change the annotation that tells what an eviction costs, and nothing else"
    assert refusal in patched(saved)
    costs = {"evictionCost": {"kueue": "Write", "volcano": "Write"}, "kueue": {"workloadPriorityClasses": True}}
    telling = [each for each in render(policy=FLAVORS | costs) if each["kind"] in RIGHTS or named(each) == OWN]
    release.cluster.api.apply(*telling)
    reads = "reads-workloads"  # kubectl reads what it patches, the webhook does not
    kubectl("create", "clusterrole", reads, "--verb=get", f"--resource={QUEUED}")
    kubectl("create", "clusterrolebinding", reads, f"--clusterrole={reads}", f"--user={ACCOUNT}")
    wait_until(lambda: refusal in patched(boost), 60, "the rights, and what bounds them")
    for what, change in REWRITTEN.items():
        assert refusal in patched(change), what
    wait_until(lambda: patched(saved) == "", 60, "the new policy of pods")
    wait_until(lambda: patched(boost, QUEUED) == "", 60, "what bounds them, for a kind that is new")
    assert refusal in patched({"spec": {"priority": 1}}, QUEUED)
    assert refusal in patched(saved, QUEUED)
    release.cluster.api.delete("pod/theirs", namespace=namespace, wait=False)
    release.cluster.api.delete(f"clusterrole/{reads}", f"clusterrolebinding/{reads}")
    delete_crd(release.cluster, QUEUED)
    release.cluster.api.apply(*(each for each in render(policy=FLAVORS) if is_of_its_rights(each)))


UNREVIEWED = "kube-system"
"""Where no webhook of ours is asked: elsewhere it refuses our gate on pods without GPUs."""
GATE = "gpu-tiers.dev/quota"
GATES = [{"name": GATE}, {"name": "example.com/other"}]


@pytest.fixture
def asleep(webhook: Webhook) -> Iterator[None]:
    """Pause the webhook, which leads and would open the gates of pods that are not queued."""
    webhook.process.send_signal(signal.SIGSTOP)
    yield
    webhook.process.send_signal(signal.SIGCONT)


@pytest.mark.usefixtures("asleep")
def test_it_may_open_its_own_gate_and_change_nothing_else(release: Release) -> None:
    kubectl, namespace = release.cluster.kubectl, UNREVIEWED
    waiting = pod(schedulingGates=GATES, nodeSelector={"zone": "a"}) | {"metadata": {"name": "waiting"}}
    release.cluster.api.create(waiting, namespace)

    def patched(*gates: str, **more: object) -> str:
        change = json.dumps(
            {"spec": {"schedulingGates": [{"$patch": "delete", "name": each} for each in gates], **more}}
        )
        command = ("patch", "pod", "waiting", f"--namespace={namespace}", "--type=strategic", "-p", change)
        return kubectl(*command, "--dry-run=server", f"--as={ACCOUNT}", check=False).stderr

    refusal = "the webhook's own account may open the scheduling gate gpu-tiers.dev/quota and change the annotation"
    assert patched(GATE) == ""
    assert refusal in patched("example.com/other")
    assert refusal in patched(GATE, "example.com/other")
    assert refusal in patched(GATE, nodeSelector={"disk": "ssd"})
    assert refusal in patched(GATE, activeDeadlineSeconds=1)
    assert refusal in patched(GATE, containers=[{"name": "main", "image": "registry.example/mine:1"}])
    tolerations = release.cluster.api.get("pod/waiting", namespace)["spec"]["tolerations"]
    assert refusal in patched(GATE, tolerations=[*tolerations, {"operator": "Exists"}])
    release.cluster.api.delete("pod/waiting", namespace=namespace, seconds=0)


def is_of_its_rights(tree: Manifest) -> bool:
    """Return whether an object carries rights of the webhook; those of the uninstall's Job are others."""
    return (tree["kind"] in RIGHTS and "open-gates" not in named(tree)) or named(tree) in (BOUND, OWN, STATUS)


TAKEN_FOR_ENDED: dict[str, Manifest] = {
    "an end": {"status": {"phase": "Failed"}},
    "another reason": {"status": {"conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}]}},
    "another status": {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}},
    "a condition more": {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}},
    "a label": {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-batch"}}},
}


@pytest.mark.usefixtures("asleep")
def test_it_may_say_why_a_queued_pod_waits_and_change_nothing_else_of_its_status(release: Release) -> None:
    kubectl, namespace = release.cluster.kubectl, UNREVIEWED
    reads = "reads-statuses"  # kubectl reads what it patches, the webhook does not
    kubectl("create", "clusterrole", reads, "--verb=get", "--resource=pods/status")
    kubectl("create", "clusterrolebinding", reads, f"--clusterrole={reads}", f"--user={ACCOUNT}")
    gates = {"held": "gpu-tiers.dev/quota", "gated": "example.com/gate"}
    for name, gate in gates.items():
        gated = pod(schedulingGates=[{"name": gate}]) | {"metadata": {"name": name}}
        release.cluster.api.create(gated, namespace)

    def patched(change: Manifest, name: str = "held") -> str:
        command = ("patch", "pod", name, "--subresource=status", f"--namespace={namespace}", "--type=strategic")
        patch = ("-p", json.dumps(change), "--dry-run=server", f"--as={ACCOUNT}")
        return kubectl(*command, *patch, check=False).stderr

    refusal = "may change why a queued pod waits, in the message of its condition, and nothing else"
    wait_until(lambda: refusal in patched(TAKEN_FOR_ENDED["an end"]), 60, "what bounds it")
    for what, change in TAKEN_FOR_ENDED.items():
        assert refusal in patched(change), what
    says = {"status": {"conditions": [{"type": "PodScheduled", "message": "waits for 4 GPUs"}]}}
    assert patched(says) == ""
    assert refusal in patched(says, "gated")
    kubectl("delete", "pod", *gates, f"--namespace={namespace}", "--wait=false")
    release.cluster.api.delete(f"clusterrole/{reads}", f"clusterrolebinding/{reads}")


def named(tree: Manifest) -> str:
    return str(tree["metadata"]["name"])


def test_readers_of_the_page_are_asked_about_by_rights_of_their_own(
    release: Release, webhook: Webhook, render: Render
) -> None:
    kubectl = release.cluster.kubectl
    release.cluster.api.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}, "gpu-tiers"
    )
    token = release.cluster.api.token("reader", "gpu-tiers")
    assert page_status(webhook, token) == 503, "the chart gives these rights only on request"
    guarded = render(policy=FLAVORS, page={"authentication": {"enabled": True}})
    release.cluster.api.apply(*(each for each in guarded if is_of_its_rights(each)))
    wait_until(lambda: page_status(webhook, token) == 403, 30, "an answer about the reader")
    binding = ("clusterrolebinding", "gpu-tiers-page-reader")
    kubectl("create", *binding, "--clusterrole=gpu-tiers-page-reader", "--serviceaccount=gpu-tiers:reader")
    another = release.cluster.api.token("reader", "gpu-tiers")
    wait_until(lambda: page_status(webhook, another) == 200, 60, "the page, with a token that no answer is kept of")
    release.cluster.api.delete("clusterrolebinding/gpu-tiers-page-reader", "clusterrole/gpu-tiers-page-reader")


def page_status(webhook: Webhook, token: str) -> int:
    trusted = ssl.create_default_context(cafile=webhook.ca)
    connection = HTTPSConnection("127.0.0.1", webhook.page_port, timeout=5, context=trusted)
    connection.request("GET", "/", headers={"authorization": f"Bearer {token}"})
    status = connection.getresponse().status
    connection.close()
    return status


def test_helm_test_asks_what_an_api_server_would(webhook: Webhook) -> None:
    asking = {
        "SERVICE": "127.0.0.1",
        "WEBHOOK_PORT": str(webhook.port),
        "METRICS_PORT": str(webhook.metrics_port),
        "CA": str(webhook.ca),
    }
    script = (CHART / "files" / "ask.py").read_text()
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=os.environ | asking, capture_output=True, text=True, check=False, timeout=60)
    assert not done.returncode, done.stdout + done.stderr
    assert "/validate 404 not found" in done.stdout


def test_an_upgrade_does_not_disturb_a_webhook_that_answers(release: Release, webhook: Webhook) -> None:
    release.upgrade(mode="Enforce", tenants=[ALPHA], webhook=webhook.values, logLevel="debug")
    wait_until_gpu_pods_are(release.cluster, refused=False)


def test_a_tier_and_a_tenant_that_names_it_come_in_one_upgrade_without_a_false_warning(
    release: Release, webhook: Webhook
) -> None:
    """The webhook reads the new policy within a minute, and here never: its file is no ConfigMap."""
    gold = {"tiers": [{"name": "gold", "value": 3000}, {"name": "iron", "value": 10}], "defaultTier": "iron"}
    types = {"workloadTypes": dict.fromkeys(("training", "serving", "batch", "interactive"), "iron")}
    flavors = {"resourceFlavors": [{"name": "b200", "nodeLabels": {"nvidia.com/gpu.product": "B200"}}]}
    rows = [{"tier": "iron", "gpus": 4}, {"resourceFlavor": "b200", "gpus": 1}]
    alpha = ALPHA | {"spec": ALPHA["spec"] | {"maxTier": "gold", "quotas": rows}}
    policy = {**gold, **types, **flavors}
    published = release.upgrade(mode="Enforce", tenants=[alpha], webhook=webhook.values, policy=policy).stderr
    assert "unknown tier" not in published
    assert "unknown flavor" not in published
    assert "above-ceiling" not in published
    assert "demotes-nowhere" not in published
    patch = json.dumps({"spec": {"maxTier": "glod"}})
    by_hand = release.cluster.kubectl("patch", "tenantquota", "alpha", "--type=merge", "-p", patch, check=False).stderr
    assert 'denied the request: spec.maxTier: unknown tier "glod"; known tiers: ' in by_hand
