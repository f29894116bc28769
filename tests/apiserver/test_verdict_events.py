"""A pod that is refused over quota, as it shows where people look: on the JobSet and on the TenantQuota."""

import json
from collections.abc import Iterator

import pytest

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


def no_room(tenant: str) -> str:
    at = f"exceeded quota: tenant {tenant}: the total is at 2 of 2 GPUs; this pod asks for 1."
    return f"{at} Would fit: no tier now. See TenantQuota/{tenant}. [over-quota]"


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    """A tenant of two GPUs, both in use; of a name of its own, for events outlive it."""
    name = f"of-{namespace}"
    with installed.tenant_for(name, namespace, quotas=[{"gpus": 2}]) as name:
        installed.eventually(lambda: bool(installed.create(gpu_pod("a", 3), namespace, dry_run=True).code), "a quota")
        assert not installed.create(gpu_pod("holder", 2), namespace).code
        yield name


def make(installed: Installed, tree: Tree, namespace: str) -> Tree:
    """Create an object; the controllerRef that what it makes would bear."""
    made = installed.create(tree, namespace).json()
    metadata = made["metadata"]
    who = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {**who, "controller": True}


def job_of_a_jobset(installed: Installed, namespace: str) -> Tree:
    """A JobSet and the Job that its controller would make, suspended so that no other controller makes its pods."""
    template = {"spec": {**gpu_pod("node")["spec"], "restartPolicy": "Never"}}
    job = {"suspend": True, "template": template}
    jobs = {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}]}
    jobset = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "ranker"}, "spec": jobs}
    owner = make(installed, jobset, namespace)
    metadata = {"name": "ranker-node-0", "ownerReferences": [owner]}
    return make(installed, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job}, namespace)


def events(installed: Installed, namespace: str, kind: str, name: str) -> list[Tree]:
    selector = f"involvedObject.kind={kind},involvedObject.name={name},type=Warning"
    return list(installed.api.get("events", namespace, fieldSelector=selector)["items"])


def test_five_refusals_are_one_event_on_the_jobset_and_one_on_the_tenantquota(
    installed: Installed, namespace: str, tenant: str
) -> None:
    job = job_of_a_jobset(installed, namespace)
    for number in range(5):
        pod = gpu_pod(f"ranker-node-0-{number}", 1)
        pod["metadata"]["ownerReferences"] = [job]
        assert no_room(tenant) in installed.create(pod, namespace).stderr

    def on_the_jobset() -> list[Tree]:
        return events(installed, namespace, "JobSet", "ranker")

    installed.eventually(lambda: [each["count"] for each in on_the_jobset()] == [5], "five refusals in one event")
    (event,) = on_the_jobset()
    assert (event["reason"], event["message"]) == ("OverQuota", no_room(tenant))
    described = installed.cluster.kubectl("describe", "jobset", "ranker", f"--namespace={namespace}").stdout
    line = next(line for line in described.splitlines() if "OverQuota" in line)
    assert "(x5 over " in line
    assert f"gpu-tiers.dev/webhook  {no_room(tenant)}" in line
    assert events(installed, namespace, "Job", "ranker-node-0") == []

    message = f"JobSet/ranker in {namespace}: {no_room(tenant)}"
    installed.eventually(
        lambda: [each["count"] for each in events(installed, "default", "TenantQuota", tenant)] == [5], "the other"
    )
    described = installed.cluster.kubectl("describe", "tenantquota", tenant).stdout
    assert message in described
    by_reason = installed.cluster.kubectl("get", "events", "--namespace=default", "--field-selector=reason=OverQuota")
    assert message in by_reason.stdout


def test_a_refused_update_shows_on_the_workload_and_a_dry_run_nowhere(
    installed: Installed, namespace: str, tenant: str
) -> None:
    template = {"spec": {**gpu_pod("node")["spec"], "restartPolicy": "Never"}}
    spec = {"suspend": True, "parallelism": 1, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}
    make(installed, job, namespace)
    larger = json.dumps({"spec": {"parallelism": 4}})
    patch = ("patch", "job", "train", f"--namespace={namespace}", "--type=merge", f"--patch={larger}")
    sentence = f"tenant {tenant}: the total allows 2 GPUs; this Job asks for 4 in all."
    assert sentence in installed.cluster.kubectl(*patch, "--dry-run=server", check=False).stderr
    assert sentence in installed.cluster.kubectl(*patch, check=False).stderr
    reasons = {"GuessTooWeak", "UpdateRefused"}
    installed.eventually(
        lambda: {each["reason"] for each in events(installed, namespace, "Job", "train")} == reasons, "its events"
    )
    message = {each["reason"]: each for each in events(installed, namespace, "Job", "train")}
    assert message["UpdateRefused"]["message"].startswith(sentence)
    assert message["UpdateRefused"]["count"] == 1
    assert message["GuessTooWeak"]["message"].startswith('[guess-too-weak] its name ("train") hints at training;')
