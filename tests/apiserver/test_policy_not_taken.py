"""A policy that is not taken is loud everywhere, and what was active before stays so, also through a restart."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from installation.helm import RELEASE, ROOT
from installation.local_webhook import Address, serve
from installation.readiness import wait_for_webhook
from localcluster.ports import free_ports

from .asking import ids, kubeconfig_of, ours, page, run
from .asking import lint as run_lint
from .installed import Installed, Tree, gpu_pod
from .test_check import check, what, words

pytestmark = pytest.mark.apiserver

WRONG = "tiers.gpu-batch.value: 401, but PriorityClass/gpu-batch exists with 400"
WARNING = f"Warning: the policy file in ConfigMap gpu-tiers/gpu-tiers was not taken: {WRONG}"
PRESET = ROOT / "charts" / "gpu-tiers" / "presets" / "four-tier.yaml"


def with_another_value(text: str) -> str:
    """The policy with a tier one higher: the one mistake that no reading of the file alone finds."""
    policy = yaml.safe_load(PRESET.read_text()) | yaml.safe_load(text)
    tiers = [{**each, "value": 401} if each["name"] == "gpu-batch" else each for each in policy["tiers"]]
    return yaml.safe_dump(policy | {"tiers": tiers})


@pytest.fixture
def good(installed: Installed) -> Iterator[str]:
    """The active text, which comes back."""
    text = installed.published["in-force.yaml"]
    yield text
    if installed.published.get("problem") or installed.published["in-force.yaml"] != text:
        installed.change_policy(text)
        installed.eventually(lambda: not installed.published["problem"], "the active policy again")


@pytest.fixture
def broken(installed: Installed, good: str) -> str:
    """A policy that was not taken, and the one that is active."""
    installed.change_policy(with_another_value(good), result="failure")
    installed.eventually(lambda: WRONG in installed.published["problem"], "the problem, published")
    return good


def events(installed: Installed, reason: str, config_map: str = RELEASE) -> list[str]:
    """Return the messages of events on the policy's ConfigMap."""
    uid = installed.get(f"configmap/{config_map}", RELEASE)["metadata"]["uid"]
    found = installed.get("events", RELEASE)["items"]
    theirs = [each for each in found if each["involvedObject"].get("uid") == uid and each["reason"] == reason]
    return [f"{each['type']}: {each['message']}" for each in theirs]


def test_it_is_loud_at_every_place_where_somebody_looks(
    installed: Installed, namespace: str, tenant: str, broken: str
) -> None:
    assert installed.published["in-force.yaml"] == broken
    assert "<strong>✗ Not well:</strong>\n<ul><li>policy: " in page(installed)
    assert f"policy: the file was not taken, the last good policy stays active: {WRONG}" in page(installed)
    assert installed.metric("gpu_tiers_policy_taken") == 0
    installed.eventually(lambda: bool(events(installed, "PolicyNotTaken")), "the event")
    (message,) = events(installed, "PolicyNotTaken")
    assert message.startswith("Warning: The policy file was not taken, and the policy of 20")
    assert WRONG in message
    found = run_lint(installed, "--output=json")
    assert found.exit_code == 1
    (line,) = [each for each in ours(found, "ConfigMap gpu-tiers") if "policy-not-taken" in each]
    assert line.startswith("error: policy-not-taken: ConfigMap gpu-tiers/gpu-tiers: was not taken, the policy of 20")
    assert WRONG in line
    assert installed.condition(tenant, "Ready")["status"] == "True"
    assert installed.create(gpu_pod("sweep", 1, tier="gpu-batch"), namespace).code == 0
    assert installed.get("pod/sweep", namespace)["spec"]["priority"] == 400


@pytest.mark.usefixtures("broken")
def test_commands_answer_from_the_active_policy_and_say_so(installed: Installed, namespace: str) -> None:
    assert installed.create(gpu_pod("sweep", 1, tier="gpu-batch"), namespace).code == 0
    since = installed.published["since"]
    for command in (
        ("posture",),
        ("explain", "pod/sweep", f"--namespace={namespace}"),
        ("why-pending", "pod/sweep", f"--namespace={namespace}"),
        ("audit", f"--namespace={namespace}"),
        ("policy", "diff", "four-tier", f"--namespace={namespace}"),
    ):
        answer = run(installed, *command)
        assert answer.exit_code in {0, 1}, (command, answer.output)
        assert answer.stderr.startswith(WARNING), command
        assert answer.stderr.rstrip().endswith(f"This is answered from the active policy since {since}"), command
    (row,) = [line for line in run(installed, "posture").stdout.splitlines() if line.startswith("gpu-batch ")]
    assert row.split()[1] == "400", "the value that pods get"
    named = run(installed, "audit", "--policy=four-tier", f"--namespace={namespace}")
    assert "Warning" not in named.stderr, "who names a policy has chosen"


@pytest.mark.usefixtures("broken")
def test_a_researcher_reads_the_same(installed: Installed, namespace: str) -> None:
    assert installed.create(gpu_pod("sweep", 1, tier="gpu-batch"), namespace).code == 0
    name = f"loud-{namespace}"
    installed.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ada"}}, namespace)
    installed.bind("ada", "edit", "ada", namespace)
    installed.bind(name, "gpu-tiers-reader", "ada", namespace, everywhere=True)
    try:
        config = kubeconfig_of(installed, "ada", namespace)
        answer = run(installed, "explain", "pod/sweep", f"--namespace={namespace}", f"--kubeconfig={config}")
        assert answer.exit_code == 0, answer.stderr
    finally:
        installed.api.delete(f"clusterrolebinding/{name}")
    assert answer.stderr.startswith(WARNING)


def test_a_restart_while_it_is_broken_changes_nothing(installed: Installed, namespace: str, broken: str) -> None:
    before = installed.published
    installed.change_leader()
    wait_for_webhook(installed.cluster)
    assert installed.metric("gpu_tiers_policy_taken") == 0
    assert WRONG in page(installed)
    installed.eventually(lambda: "which leads" in page(installed), "a leader")
    assert installed.create(gpu_pod("sweep", 1, tier="gpu-batch"), namespace).code == 0
    assert installed.get("pod/sweep", namespace)["spec"]["priority"] == 400
    assert installed.published == before, "since when it is active, too"
    assert broken == before["in-force.yaml"]


def test_once_it_is_mended_all_is_quiet(installed: Installed, broken: str) -> None:
    installed.eventually(lambda: bool(events(installed, "PolicyNotTaken")), "the event")
    installed.change_policy(broken)
    installed.eventually(lambda: not installed.published["problem"], "no problem")
    installed.eventually(lambda: bool(events(installed, "PolicyTaken")), "the event")
    assert "Normal: The policy file is active again." in events(installed, "PolicyTaken")
    assert installed.metric("gpu_tiers_policy_taken") == 1
    assert WRONG not in page(installed)
    assert "policy-not-taken" not in ids(run_lint(installed, "--output=json"))
    assert run(installed, "posture").stderr == ""


def test_a_changed_policy_is_reported_until_a_replica_has_it(installed: Installed, good: str) -> None:
    changed = yaml.safe_dump(yaml.safe_load(good) | {"defaultTier": "gpu-batch"})
    patch = {"data": {"policy.yaml": changed}}
    installed.api.patch(f"configmap/{RELEASE}", patch, RELEASE)
    since = installed.published["since"]
    message = run(installed, "posture").stderr
    assert message == (
        "Warning: the policy file in ConfigMap gpu-tiers/gpu-tiers was changed, and is not active yet. "
        f"This is answered from the active policy since {since}\n"
    )
    assert "policy-not-yet-taken" in ids(run_lint(installed, "--output=json"))
    installed.change_policy(changed)
    installed.eventually(lambda: installed.published["in-force.yaml"] == changed, "the changed policy")
    assert run(installed, "posture").stderr == ""


@contextmanager
def gone(installed: Installed, name: str, instead: Tree | None = None) -> Iterator[None]:
    """Delete an object of the installation, or make another in its place, and restore it in the end."""
    stored = installed.get(name, RELEASE)
    for field in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        stored["metadata"].pop(field, None)
    installed.api.delete(name, namespace=RELEASE)
    try:
        if instead:
            installed.create(stored | instead, RELEASE)
        yield
    finally:
        installed.api.delete(name, namespace=RELEASE)
        installed.create(stored, RELEASE)
        installed.eventually(lambda: not installed.published["problem"], "all as it was")


def heard(installed: Installed) -> list[str]:
    """Return the messages of events about the policy, also on a ConfigMap that is gone."""
    events = installed.get("events", RELEASE)["items"]
    return [each["message"] for each in events if each["reason"] == "PolicyNotTaken"]


AMISS = {
    "deleted": ("priorityclass/gpu-batch", None, "PriorityClass/gpu-batch does not exist, so its pods are refused"),
    "another value": ("priorityclass/gpu-batch", {"value": 399}, "400, but PriorityClass/gpu-batch exists with 399"),
    "no ConfigMap": (
        f"configmap/{RELEASE}",
        None,
        "ConfigMap gpu-tiers/gpu-tiers does not exist, so no new replica can start",
    ),
}


@pytest.mark.usefixtures("tenant")
@pytest.mark.parametrize(("name", "instead", "message"), AMISS.values(), ids=AMISS)
def test_what_somebody_takes_from_under_an_active_policy_is_as_loud(
    installed: Installed, name: str, instead: Tree | None, message: str
) -> None:
    """No file changed: nothing is reloaded, and the replica goes on as before."""
    since = installed.published["since"]
    with gone(installed, name, instead):
        installed.eventually(lambda: message in installed.published["problem"], "the problem, published")
        shown = page(installed)
        assert "policy: active, but not as it should be: " in shown
        assert message in shown
        assert installed.metric("gpu_tiers_policy_taken") == 0
        amiss = f"The policy of {since} is active, but not as it should be: "
        installed.eventually(
            lambda: any(each.startswith(amiss) and message in each for each in heard(installed)), "the event"
        )
        answer = check(installed)
        assert (answer.exit_code, words(answer)["policy"]) == (1, "failed"), answer.output
        assert message.partition(" does not")[0] in what(answer, "policy")
        posture = run(installed, "posture")
        assert posture.exit_code == 0, posture.stderr
        assert message.partition(", so")[0] in posture.stderr
    assert installed.metric("gpu_tiers_policy_taken") == 1


def test_at_the_first_start_a_broken_policy_is_fatal_and_no_policy_is_active(installed: Installed, good: str) -> None:
    """No policy was ever published there, so the replicas have no earlier one to use."""
    installed.change_policy(with_another_value(good), result="failure")
    installed.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}}, RELEASE)
    command = serve(installed.cluster, Address(*free_ports(3)), "--config-map=first", "--log-format=json")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 2
    assert "can't start" in ended.stdout + ended.stderr
    assert WRONG in ended.stdout + ended.stderr
    (message,) = events(installed, "PolicyNotTaken", "first")
    assert message.startswith(f"Warning: The policy file was not taken, and no policy is active: {WRONG}")
    installed.api.delete("configmap/first", namespace=RELEASE)
