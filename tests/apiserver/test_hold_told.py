"""The text about queued pods that people read: on the pod, its workload and the tenant."""

import json
import re
import time
from collections.abc import Callable, Iterator

import pytest

from .asking import run
from .conftest import new_namespace
from .installed import Installed, Tree
from .queue import QueueingTenant

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def roomy(installed: Installed) -> str:
    """A node with more GPUs than the tenant may use."""
    installed.cluster.add_node("roomy", gpus=64)
    return "roomy"


@pytest.fixture
def line(installed: Installed, roomy: str) -> Iterator[QueueingTenant]:
    with new_namespace(installed.cluster) as namespace:
        quotas = [{"gpus": 16}, {"tier": "gpu-training", "gpus": 6}]
        with installed.tenant_for(f"told-{namespace}", namespace, quotas=quotas, onExceed="Hold"):
            yield QueueingTenant(installed, namespace, roomy)


def condition(line: QueueingTenant, pod: str) -> Tree:
    conditions = line.installed.get(f"pod/{pod}", line.namespace)["status"]["conditions"]
    return next(each for each in conditions if each["type"] == "PodScheduled")


def messages_of(line: QueueingTenant, pods: list[str]) -> list[str]:
    """Return the messages of those pods that say why they wait."""
    messages = (condition(line, each).get("message", "") for each in pods)
    return [each for each in messages if each.startswith("waits for")]


def queue_of(line: QueueingTenant) -> Tree:
    return line.installed.get(f"tenantquota/told-{line.namespace}", "").get("status", {}).get("queue", {})


def reserved(line: QueueingTenant, tier: str) -> str:
    """Return what is reserved for the queue in the row of a tier."""
    rows = line.installed.get(f"tenantquota/told-{line.namespace}", "").get("status", {}).get("usage", [])
    return next((str(each.get("reservedForQueue", "")) for each in rows if each.get("tier") == tier), "")


def events(line: QueueingTenant, reason: str = "Queued") -> set[tuple[str, str, str]]:
    found = line.installed.get("events", line.namespace)["items"]
    return {
        (each["involvedObject"]["kind"], each["involvedObject"]["name"], each["message"])
        for each in found
        if each["reason"] == reason
    }


def test_the_pod_its_workload_and_the_tenant_say_who_waits_for_what(line: QueueingTenant) -> None:
    tenant = f"told-{line.namespace}"
    line.create(line.pod("there", gpus=6))
    line.eventually_runs("there")
    line.create(line.job("gang", pods=4))
    line.installed.eventually(lambda: queue_of(line).get("pods") == 4, "the gang, in the tenant's status")
    line.create(line.pod("behind", gpus=2))
    line.installed.eventually(lambda: queue_of(line).get("workloads") == 2, "the one behind it")

    # 1. The status, and what kubectl shows of it.
    assert queue_of(line)["tiers"] == [{"tier": "gpu-training", "pods": 5, "gpus": "6"}]
    first, second = queue_of(line)["entries"]
    assert (first["workload"], first["pods"], first["gpus"], first["short"]) == ("Job/gang", 4, "4", "gpu-training")
    assert (second["workload"], second["gpus"], second["short"], second["behind"]) == (
        "Pod/behind",
        "2",
        "gpu-training",
        1,
    )
    table = line.installed.cluster.kubectl("get", "tenantquota", tenant).stdout
    heading, row = table.splitlines()
    assert row[heading.index("QUEUED") :].split()[0] == "5"

    # 2. The condition of the first pod of each, whose reason stays.
    of_gang = f"waits for 4 GPUs: tenant {tenant} uses 6 of 6 of gpu-training; position 1 of 1 when it came."
    behind = (
        f"waits for 2 GPUs behind Job/gang (needs 4 GPUs): tenant {tenant} uses 6 of 6 of gpu-training; "
        f"position 2 of 2 when it came. See TenantQuota/{tenant}."
    )
    line.installed.eventually(lambda: condition(line, "behind").get("message") == behind, "why it waits")
    assert condition(line, "behind")["reason"] == "SchedulingGated"
    assert condition(line, "behind")["status"] == "False"
    members = [name for name in line.waiting() if name.startswith("gang-")]
    line.installed.eventually(lambda: bool(messages_of(line, members)), "a pod of the gang, told")
    sentence = messages_of(line, members)
    assert sentence == [f"{of_gang} See TenantQuota/{tenant}."]
    assert behind in line.installed.cluster.kubectl("describe", "pod", "behind", f"--namespace={line.namespace}").stdout

    # 3. An event on each pod, and one on the workload, which a person applied.
    line.installed.eventually(lambda: len(events(line)) == 6, "the events")
    pods = {("Pod", member, sentence[0]) for member in members}
    assert events(line) == {("Job", "gang", sentence[0]), ("Pod", "behind", behind), *pods}

    # 4. Metrics.
    assert line.installed.metric("gpu_tiers_queued_pods", tenant=tenant, tier="gpu-training") == 5
    assert line.installed.metric("gpu_tiers_queued_gpus", tenant=tenant) == 6
    assert line.installed.metric("gpu_tiers_queue_head_seconds", tenant=tenant) > 0
    assert line.installed.metric("gpu_tiers_queue_head_with_room_seconds", tenant=tenant) == 0

    # 5. Nothing is left of it once all run.
    before = line.installed.metric("gpu_tiers_queued_seconds_count", tier="gpu-training")
    line.delete("pod", "there")
    line.installed.eventually(lambda: not line.waiting(), "all gates, opened")
    line.installed.eventually(lambda: queue_of(line)["pods"] == 0 and not queue_of(line)["entries"], "an empty line")
    assert line.installed.metric("gpu_tiers_queued_seconds_count", tier="gpu-training") == before + 5
    line.installed.eventually(lambda: len(events(line, "Admitted")) == 5, "an event of each gate")
    assert {(kind, name) for kind, name, _ in events(line, "Admitted")} == {
        ("Pod", name) for name in (*members, "behind")
    }
    assert all("its gate is open now" in message for _, _, message in events(line, "Admitted"))


def test_apply_says_that_others_come_first_and_of_a_cronjob_what_its_runs_meet(line: QueueingTenant) -> None:
    """Two GPUs of the row are free, and reserved for the gang that waits for four."""
    line.create(line.pod("there", gpus=4))
    line.eventually_runs("there")
    line.create(line.job("gang", pods=4))
    line.installed.eventually(lambda: reserved(line, "gpu-training") == "2", "what the gang reserves")

    def warned(tree: Tree, *, dry_run: bool = False) -> str:
        return line.installed.create(tree, line.namespace, dry_run=dry_run).stderr

    room = f"tenant told-{line.namespace}: gpu-training is at 4 of 6 GPUs, plus 2 reserved for pods queued "
    small = line.job("small", pods=1)
    sentence = f"{room}earlier; this Job asks for 1 in all, so its pods are queued (Hold)"
    assert sentence in warned(small, dry_run=True)
    assert sentence in warned(small)
    line.installed.eventually(lambda: queue_of(line).get("workloads") == 2, "it, behind the gang")

    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "labels": small["metadata"].get("labels", {})},
        "spec": {"schedule": "0 3 * * *", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": small["spec"]}},
    }
    run_waits = "If there is no more room when a run begins, its pods are queued (Hold)"
    assert f"{room}earlier; each run of this CronJob asks for 1 in all. {run_waits}" in warned(cron_job)


def test_commands_say_whose_turn_is_before_yours(line: QueueingTenant) -> None:
    tenant, installed = f"told-{line.namespace}", line.installed
    there = line.pod("there", gpus=6)
    there["spec"] |= {"activeDeadlineSeconds": 3600}
    line.create(there)
    line.eventually_runs("there")
    line.create(line.job("gang", pods=4))
    installed.eventually(lambda: queue_of(line).get("pods") == 4, "the gang, in the tenant's status")
    line.create(line.pod("behind", gpus=2))
    installed.eventually(lambda: queue_of(line).get("workloads") == 2, "the one behind it")

    def asked(*arguments: str) -> str:
        answer = run(installed, *arguments)
        assert (answer.exit_code, answer.stderr) == (0, "")
        return answer.stdout

    here = f"--namespace={line.namespace}"
    why = asked("why-pending", "behind", here)
    assert "gpu-tiers.dev/quota: it is queued by the quota of its tenant." in why
    behind = (
        f"It waits for 2 GPUs behind Job/gang (needs 4 GPUs): tenant {tenant} uses 6 of 6 of gpu-training; "
        "position 2 of 2. It starts by itself."
    )
    assert behind in why
    assert f"Before it: Job/gang in {line.namespace} (4 GPUs, gpu-training); 4 GPUs in all." in why
    assert re.search(r"It has room by 2\S+Z, when the activeDeadlineSeconds of running workloads end them", why)
    why = asked("why-pending", "job/gang", here)
    assert f"It waits for 4 GPUs: tenant {tenant} uses 6 of 6 of gpu-training; position 1 of 2." in why

    sentence = f"is queued: tenant {tenant} uses 6 of 6 of gpu-training, and 1 workload waits in its queue"
    assert sentence in asked("explain", "job/gang", here)
    assert sentence in asked("explain", "behind", here)

    usage = asked("usage", tenant)
    assert f"The queue of tenant {tenant}: 5 pods wait, for 6 GPUs in all" in usage
    first, second = usage.splitlines()[-2:]
    assert first.split()[:6] == ["1", line.namespace, "Job/gang", "gpu-training", "4", "4"]
    assert second.split()[:6] == ["2", line.namespace, "Pod/behind", "gpu-training", "1", "2"]
    assert first.endswith("room in gpu-training")
    assert second.endswith("room in gpu-training")


def test_gpus_that_the_head_reserves_are_left_to_a_higher_tier(installed: Installed, roomy: str) -> None:
    with new_namespace(installed.cluster) as namespace:
        quotas = [{"gpus": 6}, {"tier": "gpu-batch", "gpus": 6}, {"tier": "gpu-training", "gpus": 4}]
        with installed.tenant_for(f"told-{namespace}", namespace, quotas=quotas, onExceed="Hold") as tenant:
            line = QueueingTenant(installed, namespace, roomy)
            line.create(line.pod("there", gpus=3, tier="gpu-batch"))
            line.eventually_runs("there")
            line.create(line.pod("head", gpus=4, tier="gpu-batch"))
            installed.eventually(lambda: reserved(line, "gpu-batch") == "3", "what the head reserves")

            # 1. The head needs the total, and a pod of a higher tier may use it.
            (usage,) = json.loads(run(installed, "usage", tenant, "--output=json").stdout)["items"]
            rows = {each["subject"]: each["left"] for each in usage["rows"]}
            assert rows == {"total": 0, "gpu-batch": 0, "gpu-training": 3}
            asked = run(installed, "explain", "there", f"--namespace={namespace}", "--output=json")
            assert {each["subject"]: each["left"] for each in json.loads(asked.stdout)["tenant"]["rows"]} == rows

            # 2. So it does.
            line.create(line.pod("higher", gpus=2))
            line.eventually_runs("higher")
            assert line.waiting() == {"head"}


def test_who_keeps_a_gate_shut_is_named_on_the_pod(line: QueueingTenant) -> None:
    policy, admission = f"frozen-{line.namespace}", "admissionregistration.k8s.io/v1"
    here = {"matchLabels": {"kubernetes.io/metadata.name": line.namespace}}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}]
    spec = {
        "matchConstraints": {"namespaceSelector": here, "resourceRules": rules},
        "validations": [{"expression": "oldObject.metadata.name != 'waits'", "message": "no pod may change now"}],
    }
    bound = {"policyName": policy, "validationActions": ["Deny"]}
    line.create(line.pod("there", gpus=6))
    line.eventually_runs("there")
    line.create(line.pod("waits"))
    kind, meta = "ValidatingAdmissionPolicy", {"name": policy}
    line.create({"apiVersion": admission, "kind": kind, "metadata": meta, "spec": spec})
    line.create({"apiVersion": admission, "kind": f"{kind}Binding", "metadata": meta, "spec": bound})

    def changed() -> str:
        change = ("annotate", "pod", "waits", "a=b", f"--namespace={line.namespace}", "--dry-run=server")
        return line.installed.cluster.kubectl(*change, check=False).stderr

    def said() -> str:
        return run(line.installed, "why-pending", "waits", f"--namespace={line.namespace}").stdout

    try:
        line.installed.eventually(lambda: "no pod may change now" in changed(), "the policy, active")
        line.delete("pod", "there")
        line.installed.eventually(lambda: "no pod may change now" in said(), "who refuses")
        assert "its GPUs are reserved, but its gate can't be opened" in said()
        assert line.waiting() == {"waits"}
    finally:
        line.installed.cluster.kubectl("delete", f"{kind},{kind}Binding".lower(), policy)
    line.eventually_runs("waits")


def test_a_line_that_does_not_change_is_written_once(line: QueueingTenant) -> None:
    line.create(line.pod("there", gpus=6))
    line.eventually_runs("there")
    line.create(line.pod("waits", gpus=2))
    line.installed.eventually(lambda: bool(messages_of(line, ["waits"])), "why it waits")
    line.installed.eventually(lambda: queue_of(line).get("pods") == 1, "it, in the tenant's status")

    def versions() -> tuple[str, str]:
        found = (("tenantquota/told-" + line.namespace, ""), ("pod/waits", line.namespace))
        one, other = (json.dumps(line.installed.get(*each)["metadata"]["resourceVersion"]) for each in found)
        return one, other

    line.installed.eventually(lambda: _stays(versions), "nothing that is written any more")


def _stays(versions: Callable[[], tuple[str, str]]) -> bool:
    before = versions()
    time.sleep(7)  # longer than the leader's rounds are apart
    return bool(before == versions())
