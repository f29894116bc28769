"""explain and why-pending about real objects: one command from a question to its answer."""

import json
import re
from collections.abc import Iterator

import pytest

from .asking import SOME, expect, run, running, why
from .installed import Installed, gpu_deployment, gpu_job, gpu_pod

pytestmark = pytest.mark.apiserver


def asked(installed: Installed, namespace: str, *arguments: str) -> str:
    """The answer of a command that succeeds, with one name for every namespace and one time for every time."""
    answer = run(installed, *arguments, f"--namespace={namespace}")
    assert (answer.exit_code, answer.stderr) == (0, "")
    text = re.sub(
        r"refused (once,|\d+ times, the last time)",
        "refused 4 times, the last time",
        answer.stdout.replace(namespace, SOME),
    )
    text = text.replace("It may try again at any moment.", "It tries again by itself, within 20 seconds or so.")
    return re.sub(r"\d+ (second|minute)s?", "20 seconds", text).rstrip("\n")


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    rows = [{"tier": "gpu-training", "gpus": "4"}, {"gpus": "6"}]
    with installed.tenant_for(namespace, namespace, quotas=rows) as name:
        yield name


def test_a_job_and_its_pod_are_explained(installed: Installed, namespace: str, node: str, tenant: str) -> None:
    assert installed.create(gpu_job("train", 4, node), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "gpu-training 4/4, total 4/6", "the pod is counted")
    pods = ("get", "pods", f"--namespace={namespace}", "--output=jsonpath={.items[0].metadata.name}")
    pod = installed.cluster.kubectl(*pods).stdout
    expect("explain-job", asked(installed, namespace, "explain", "jobs", "train"))
    expect("explain-pod", asked(installed, namespace, "explain", pod).replace(pod, "train-x7k2p"))
    found = json.loads(run(installed, "explain", "job/train", f"--namespace={namespace}", "--output=json").stdout)
    assert (found["tier"], found["pods"][0]["now"]["tier"]) == ("gpu-training", "gpu-training")


@pytest.mark.usefixtures("tenant")
def test_a_gang_that_is_booked_whole_says_so(installed: Installed, namespace: str) -> None:
    spec = {"containers": [{**gpu_pod("a", 2)["spec"]["containers"][0], "name": "pytorch"}]}
    workers = {"Worker": {"replicas": 2, "template": {"spec": spec}}}
    body = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "llm"}}
    assert installed.create({**body, "spec": {"pytorchReplicaSpecs": workers}}, namespace).code == 0
    expect("explain-gang", asked(installed, namespace, "explain", "pytorchjob.kubeflow.org/llm"))
    assert "It has no pod, and no Event reports a refusal" in why(installed, namespace, "pytorchjobs/llm")


def test_a_pod_from_before_the_installation_says_so(installed: Installed) -> None:
    assert installed.create(gpu_pod("before", 1), "kube-public").code == 0
    try:
        expect("explain-before", asked(installed, "kube-public", "explain", "po/before"))
    finally:
        installed.api.delete("pod/before", namespace="kube-public", seconds=0)


@pytest.mark.usefixtures("tenant")
def test_a_notebook_waits_for_pods_that_it_may_not_evict(installed: Installed, namespace: str, node: str) -> None:
    installed.create(gpu_pod("batch", 4, tier="gpu-batch", node=node), namespace)
    installed.eventually(lambda: running(installed, namespace, "batch"), "a full node")
    installed.create(gpu_pod("notebook", 1, tier="gpu-interactive", node=node), namespace)
    installed.eventually(lambda: "The scheduler says" in why(installed, namespace, "notebook"), "its wait")
    expect("why-notebook", asked(installed, namespace, "why-pending", "notebook"))
    markdown = asked(installed, namespace, "why-pending", "notebook", "--output=markdown")
    assert "| gpu-batch | team-research | 4 | team-research/batch | no: higher priority |" in markdown


@pytest.mark.usefixtures("tenant")
def test_a_refused_deployment_reads_why_and_when(installed: Installed, namespace: str) -> None:
    assert installed.create(gpu_pod("holder", 4), namespace).code == 0
    assert installed.create(gpu_deployment("web", 4), namespace).code == 0
    text = asked(installed, namespace, "why-pending", "deploy/web")  # at once: the command waits for the first try
    expect("why-refused", re.sub(r"web-[0-9a-z]+", "web-6d4cf56db", text))


def test_what_runs_demoted_reads_what_replaces_its_pod(installed: Installed, namespace: str, node: str) -> None:
    """One pod more would have no room in any tier; the pod that comes for this one has its place.

    A label for gpu-serving would change nothing: there it has no room either.
    """
    rows = [{"tier": "gpu-training", "gpus": 2}, {"tier": "gpu-serving", "gpus": 1}, {"gpus": 4}]
    tiers = ["gpu-training", "gpu-serving", "gpu-batch"]
    with installed.tenant_for(namespace, namespace, allowedTiers=tiers, quotas=rows, onExceed="Demote") as tenant:
        assert installed.create(gpu_job("within", 2, node), namespace).code == 0
        installed.eventually(lambda: "gpu-training 2/2" in installed.usage(tenant), "what is within its quota")
        assert installed.create(gpu_job("finetune", 2, node), namespace).code == 0
        installed.eventually(lambda: "total 4/4" in installed.usage(tenant), "a full tenant")
        output = asked(installed, namespace, "explain", "job/finetune")
        (pod,) = (each for each in installed.get("pods", namespace)["items"] if "finetune" in each["metadata"]["name"])
        of_pod = asked(installed, namespace, "explain", pod["metadata"]["name"])
    batch = "gpu-batch (400, PreemptLowerPriority)"
    demoted = "tenant team-research has no room for it in gpu-training: it runs as gpu-batch"
    assert re.search(rf"class of a new pod +{re.escape(batch)}\n", output)
    assert re.search(
        r"over quota +tenant team-research has no room for it in gpu-training: a new pod now runs as", output
    )
    assert re.search(rf"its pods +1 with {re.escape(batch)}\n", output)
    assert "kubectl label" not in output
    assert (
        "What would change its tier: a pod that is created while its tenant has room in gpu-training gets gpu-training"
        in output
    )
    assert re.search(rf"a new one +{demoted}", of_pod)


def test_what_may_not_come_back_says_so_while_it_runs(installed: Installed, namespace: str, node: str) -> None:
    with installed.tenant_for(namespace, namespace, quotas=[{"gpus": 4}]) as tenant:
        assert installed.create(gpu_job("train", 4, node), namespace).code == 0
        installed.eventually(lambda: installed.usage(tenant) == "total 4/4", "the pod is counted")
        assert "would be refused" not in asked(installed, namespace, "explain", "job/train")
        installed.tenant(tenant, namespace, quotas=[{"gpus": 4}], maxTier="gpu-batch")
        output = asked(installed, namespace, "explain", "job/train")
    assert re.search(r"a new pod +would be refused now: .*gpu-training is not for tenant team-research", output)


def test_a_pod_without_room_reads_what_the_table_of_its_tenant_says(
    installed: Installed, namespace: str, node: str
) -> None:
    """The pod that its next one replaces is counted in both, though that one leaves."""
    web = gpu_deployment("web", 1, node, tier="gpu-training", replicas=4)
    with installed.tenant_for(namespace, namespace, quotas=[{"gpus": 4}]) as tenant:
        assert installed.create(web, namespace).code == 0
        installed.eventually(lambda: installed.usage(tenant) == "total 4/4", "its pods are counted")
        installed.tenant(tenant, namespace, quotas=[{"gpus": 2}])
        installed.eventually(lambda: installed.usage(tenant) == "total 4/2", "its row is lowered")
        pod = installed.get("pods", namespace)["items"][0]["metadata"]["name"]
        answers = [asked(installed, namespace, "explain", each) for each in (pod, "deploy/web")]
    for output in answers:
        assert "the total is at 4 of 2 GPUs; this pod asks for 1." in output
        assert re.search(r"total +4 +0 +0 +2 +0\n?", output)


def test_a_deployment_that_was_scaled_too_far_reads_what_its_next_pod_is(
    installed: Installed, namespace: str, node: str
) -> None:
    web = gpu_deployment("web", 2, node, tier="gpu-training", replicas=2)
    with installed.tenant_for(namespace, namespace, quotas=[{"tier": "gpu-training", "gpus": 4}]) as tenant:
        assert installed.create(web, namespace).code == 0
        installed.eventually(lambda: installed.usage(tenant) == "gpu-training 4/4", "its pods are counted")
        installed.cluster.kubectl("scale", "deploy/web", "--replicas=3", f"--namespace={namespace}")
        installed.eventually(lambda: "refused at admission" in why(installed, namespace, "deploy/web"), "a refusal")
        waits = asked(installed, namespace, "why-pending", "deploy/web")
        output = asked(installed, namespace, "explain", "deploy/web")
    refusal = "exceeded quota: tenant team-research: gpu-training is at 4 of 4 GPUs; this pod asks for 2."
    assert f"2 of its 3 pods run; 1 is refused at admission: {refusal}" in waits
    assert "The next try would be refused" not in waits
    assert re.search(rf"a new pod +would be refused now: {refusal}", output)


def test_a_deployment_of_which_some_pods_wait_and_one_is_refused_reads_both_in_one_sentence(
    installed: Installed, namespace: str
) -> None:
    elsewhere = gpu_deployment("web", 2, "no-such-node", tier="gpu-training", replicas=2)
    with installed.tenant_for(namespace, namespace, quotas=[{"tier": "gpu-training", "gpus": 4}]) as tenant:
        assert installed.create(elsewhere, namespace).code == 0
        installed.eventually(lambda: installed.usage(tenant) == "gpu-training 4/4", "its pods are counted")
        installed.cluster.kubectl("scale", "deploy/web", "--replicas=3", f"--namespace={namespace}")
        installed.eventually(lambda: "refused at admission" in why(installed, namespace, "deploy/web"), "a refusal")
        output = why(installed, namespace, "deploy/web")
    assert re.search(
        r"\n2 of its 3 pods exist and are pending, such as web-\S+; 1 is refused at admission: exceeded ", output
    )
    assert "2 of its 2 pods" not in output


@pytest.mark.usefixtures("tenant")
def test_a_job_that_lost_a_pod_reads_when_the_next_one_comes(installed: Installed, namespace: str, node: str) -> None:
    """Its status counts no failed pod, because a podFailurePolicy ignores what a drain deletes."""
    ignores = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    rules = [ignores, {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [143]}}]
    job = gpu_job("pair", 1, node, completions=2, parallelism=2, podFailurePolicy={"rules": rules})
    assert installed.create(job, namespace).code == 0
    installed.eventually(lambda: "2 of 2 run" in why(installed, namespace, "job/pair"), "its pods run")
    pods = [each["metadata"]["name"] for each in installed.get("pods", namespace)["items"]]
    installed.api.delete(f"pod/{pods[0]}", namespace=namespace)
    output = why(installed, namespace, "job/pair")
    assert (
        "None of its pods is pending: 1 of 1 run.\n1 is missing.\nThe Job controller makes the next pod after a pause"
        in output
    )
    installed.api.delete(f"pod/{pods[1]}", namespace=namespace)
    assert "WHY\nThe Job controller makes the next pod after a pause" in why(installed, namespace, "job/pair")


def test_what_is_scaled_to_nothing_reads_what_its_next_pod_would_be(
    installed: Installed, namespace: str, tenant: str
) -> None:
    assert installed.create(gpu_deployment("web", 2, tier="gpu-batch", replicas=0), namespace).code == 0
    output = asked(installed, namespace, "explain", "deploy/web")
    assert re.search(r"class of a new pod +gpu-batch \(400, PreemptLowerPriority\)", output)
    assert re.search(r"hook of a new pod +\S", output)
    assert (
        "What would change its tier: kubectl label deployment/web -n team-research --overwrite gpu-tiers.dev/" in output
    )
    installed.tenant(tenant, namespace, quotas=[{"gpus": 1}])
    output = asked(installed, namespace, "explain", "deploy/web")
    assert re.search(r"a new pod +would be refused now: tenant team-research: the total allows 1 GPU", output)


@pytest.mark.usefixtures("tenant")
def test_a_pod_that_waits_for_its_volume_reads_so_and_nothing_of_gpus(
    installed: Installed, namespace: str, node: str
) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "corpus"}}
    installed.create(gpu_pod("reads", 1, tier="gpu-batch", node=node, volumes=[volume]), namespace)
    installed.eventually(lambda: "The scheduler says" in why(installed, namespace, "reads"), "its wait")
    output = why(installed, namespace, "reads").splitlines()
    assert output[2] == "It waits for its volume: PersistentVolumeClaim corpus does not exist. Create it."
    assert len(output) == 4, output


ENDED = "it had no preStop hook but 30 s after SIGTERM to save; whether it saved is unknown; it ended after 1 s"


def test_an_evicted_pod_reads_who_took_its_gpus(installed: Installed, namespace: str, node: str) -> None:
    assert installed.create(gpu_pod("batch", 4, tier="gpu-batch", node=node), namespace).code == 0
    installed.eventually(lambda: running(installed, namespace, "batch"), "a full node")
    assert installed.create(gpu_pod("training", 4, tier="gpu-training", node=node), namespace).code == 0
    installed.eventually(lambda: "was evicted" in why(installed, namespace, "batch"), "the outcome")
    text = asked(installed, namespace, "why-pending", "batch")
    # a fake node ends a pod at once, maybe before anybody has read it
    text = text.replace("; whether it saved is unknown (", f"; {ENDED} (")
    text = re.sub(r"reported at \S+Z", "reported at 2026-01-01T00:00:00Z", text)
    expect("why-evicted", re.sub(r"ended after \d+ s", "ended after 1 s", text))


def test_a_gated_and_a_suspended_workload_say_what_they_wait_for(installed: Installed, namespace: str) -> None:
    installed.create(gpu_pod("gated", 1, schedulingGates=[{"name": "example.com/data"}]), namespace)
    installed.create(gpu_job("later", 1, suspend=True), namespace)
    assert "example.com/data: the system that set it has not removed it" in why(installed, namespace, "gated")
    assert "It is suspended (spec.suspend)" in why(installed, namespace, "job.batch/later")


def test_what_has_no_pod_says_when_it_has_one_or_how_it_failed(installed: Installed, namespace: str) -> None:
    nightly = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}}
    spec = {"schedule": "0 3 1 1 *", "jobTemplate": {"spec": gpu_job("x", 1)["spec"]}}
    assert installed.create(nightly | {"spec": spec}, namespace).code == 0
    assert "It makes pods by its schedule, 0 3 1 1 *: none was due yet." in why(installed, namespace, "cronjob/nightly")
    assert installed.create(gpu_job("late", 1, activeDeadlineSeconds=1), namespace).code == 0

    def output() -> bool:
        return "It has failed (DeadlineExceeded: " in why(installed, namespace, "job/late")

    installed.eventually(output, "the deadline")


def test_by_a_policy_that_somebody_names_the_clusters_mode_is_not_known(installed: Installed, namespace: str) -> None:
    assert installed.create(gpu_pod("web", 1), namespace).code == 0
    assert "The mode is" not in asked(installed, namespace, "explain", "web")
    output = asked(installed, namespace, "explain", "web", "--policy=four-tier")
    assert output.rstrip().endswith("--policy says mode Audit; the cluster's mode is not known.")


def test_what_is_not_there_is_said(installed: Installed, namespace: str) -> None:
    for command in ("explain", "why-pending"):
        answer = run(installed, command, "nobody", "--namespace=nowhere")
        assert (answer.exit_code, answer.stderr) == (2, "there is no namespace nowhere\n")
        answer = run(installed, command, "nobody", f"--namespace={namespace}")
        there_is_none = f'there is no Pod "nobody" in namespace {namespace}. For a workload write its kind too'
        assert (answer.exit_code, answer.stderr.startswith(there_is_none)) == (2, True)
        answer = run(installed, command, "service/web", f"--namespace={namespace}")
        assert (answer.exit_code, '"service" makes no pods that gpu-tiers knows of' in answer.stderr) == (2, True)
        answer = run(installed, command, "jobb/web", f"--namespace={namespace}")
        assert (answer.exit_code, 'serves no "jobb" that makes pods' in answer.stderr) == (2, True)
