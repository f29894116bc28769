"""The pods that the API server asks the webhook about, seen from what happens while the webhook is dead.

Under Enforce a pod that the webhook would be asked about is refused. The other entries let everything pass, and the
API server's own count of calls that it forgave says whether it tried.
"""

import pytest

from localcluster import ApiError, Cluster
from localcluster.waiting import wait_until

from .asking import GPU, GPU_POD, condition_errors, forgiven, pod, try_create, wait_until_gpu_pods_are
from .helm import Manifest
from .release import Release

pytestmark = pytest.mark.apiserver

DEVICE = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"


def limits(name: str, amount: str = "1") -> Manifest:
    return {"resources": {"limits": {name: amount}}}


def init(**container: object) -> list[Manifest]:
    return [{"name": "first", "image": "example.com/none", **container}]


def requests(name: str, amount: object) -> Manifest:
    return {"resources": {"requests": {name: amount}, "limits": {name: amount}}}


def annotated(manifest: Manifest, **annotations: str) -> Manifest:
    written = {name.replace("_", "-"): value for name, value in annotations.items()}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": written}}


MIRROR = pod(main=GPU, nodeName="node-1")
MIRROR["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "0a"}
KUBELET = {"user": "system:node:node-1", "group": "system:nodes"}

DEVICE_POD = pod(main=limits("example.com/thing"))

ASKED = {
    "a GPU": GPU_POD,
    "a GPU in requests and limits": pod(main=requests("nvidia.com/gpu", "1")),
    "a GPU as a number": pod(main=requests("nvidia.com/gpu", 1)),
    "thousands of GPUs": pod(main=limits("nvidia.com/gpu", "1k")),
    "a GPU in thousandths": pod(main=limits("nvidia.com/gpu", "1000m")),
    "a GPU of the last container": pod(containers=[{"name": "a", "image": "b"}, {"name": "c", "image": "d", **GPU}]),
    "a GPU beside nulls": pod(main=GPU, initContainers=None, resourceClaims=None),
    "a GPU beside another resource": pod(main={"resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}}),
    "a GPU for an init container": pod(initContainers=init(**GPU)),
    "a GPU for a sidecar": pod(initContainers=init(restartPolicy="Always", **GPU)),
    "a MIG slice": pod(main=limits("nvidia.com/mig-1g.10gb")),
    "a MIG slice of a B200": pod(main=limits("nvidia.com/mig-3g.90gb")),
    "a GPU by its DeviceClass": pod(main=limits(DEVICE)),
    "time-slices that the policy does not list": pod(main=limits("nvidia.com/gpu.shared")),
    "another vendor's accelerator that the policy does not list": pod(main=limits("huawei.com/Ascend950")),
    "an accelerator by a word of its name": pod(main=limits("example.com/npu")),
    "memory of a GPU": pod(main=limits("koordinator.sh/gpu-memory", "16Gi")),
    "a claim": pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}]),
    "a tier label": pod(labels={"gpu-tiers.dev/tier": "gpu-batch"}),
    "a tier's class": pod(priorityClassName="gpu-batch"),
    "a tier's class of the adoption": pod(priorityClassName="gpu-batch-nonpreempting"),
    "a JobSet's pod": pod(labels={"jobset.sigs.k8s.io/jobset-name": "train"}),
    "an MPI launcher": pod(labels={"training.kubeflow.org/job-name": "train"}),
    "a Ray head": pod(labels={"ray.io/cluster": "ray"}),
    "a LeaderWorkerSet's pod": pod(labels={"leaderworkerset.sigs.k8s.io/name": "llm"}),
    "a member of a PodGroup": pod(schedulingGroup={"podGroupName": "gang"}),
    "a GPU pod with the annotation of a static pod": MIRROR,
}

LEFT_ALONE = {
    "a CPU pod": pod(),
    "a CPU pod full of nulls": pod(
        labels=None,
        main={"resources": {"requests": None, "limits": None}},
        initContainers=None,
        resourceClaims=None,
        schedulingGroup=None,
        priorityClassName=None,
    ),
    "a CPU pod without resources": pod(main={"resources": None}, initContainers=[]),
    "a CPU pod of empty parts": pod(main={"resources": {"requests": {}, "limits": {}}}, priorityClassName=""),
    "no GPU in thousandths": pod(main=limits("nvidia.com/gpu", "0m")),
    "no GPU as a number": pod(main=requests("nvidia.com/gpu", 0)),
    "no GPU for an init container": pod(initContainers=init(**limits("nvidia.com/gpu", "0"))),
    "a null quantity": pod(main=requests("nvidia.com/gpu", None)),
    "a device that is limited and not requested": pod(
        main={"resources": {"limits": {DEVICE: "1"}, "requests": {DEVICE: "0"}}}
    ),
    "a part of a GPU that the policy does not count": annotated(pod(), gpu_fraction="0.5"),
    "a CPU pod with requests": pod(main=limits("cpu", "100m")),
    "a CPU pod with labels": pod(labels={"app": "coredns"}),
    "a pod of a Job": pod(labels={"batch.kubernetes.io/job-name": "report"}),
    "what a DeviceClass may call its GPUs": DEVICE_POD,
    "a network card that is called by its interface": pod(main=limits("nvidia.com/resibs1")),
    "a resource that the policy says is no GPU": pod(main=limits("devices.kubevirt.io/kvm")),
    "large pages": pod(main={"resources": {"limits": {"hugepages-2Mi": "2Mi", "memory": "1Mi"}}}),
    "zero GPUs": pod(main=limits("nvidia.com/gpu", "0")),
    "a class that is no tier": pod(priorityClassName="system-cluster-critical"),
}


@pytest.mark.parametrize("who", ASKED)
def test_refused_by_a_sentence_that_names_the_webhook(enforced: Release, namespace: str, who: str) -> None:
    answer = try_create(enforced.cluster, namespace, ASKED[who])
    assert 'failed calling webhook "pods.validate.gpu-tiers.dev"' in answer.stderr


@pytest.mark.parametrize("who", LEFT_ALONE)
def test_not_asked_about(enforced: Release, namespace: str, who: str) -> None:
    answer = try_create(enforced.cluster, namespace, LEFT_ALONE[who])
    assert not answer.code, answer.stderr


@pytest.mark.parametrize(
    ("manifest", "calls"),
    [
        pytest.param(DEVICE_POD, 1, id="what a DeviceClass may call its GPUs"),
        pytest.param(pod(initContainers=init(**limits("example.com/thing"))), 1, id="the same first"),
        pytest.param(pod(main=limits("nvidia.com/hostdev")), 1, id="a network card of a GPU vendor"),
        pytest.param(pod(main=limits("devices.kubevirt.io/kvm")), 0, id="what the policy says is no GPU"),
        pytest.param(pod(), 0, id="nothing"),
    ],
)
def test_a_device_that_may_be_a_gpu_waits_for_nobody(
    enforced: Release, namespace: str, manifest: Manifest, calls: int
) -> None:
    """A network card is asked for in the same way."""
    with forgiven(enforced.cluster, "pods-with-devices.validate.gpu-tiers.dev") as count:
        assert not try_create(enforced.cluster, namespace, manifest).code
        assert count() == calls


def test_only_a_kubelet_s_static_pod_is_not_asked_about(enforced: Release, namespace: str) -> None:
    answer = try_create(enforced.cluster, namespace, MIRROR, **KUBELET)
    assert not answer.code, answer.stderr


def test_exempt_namespaces_are_not_asked_about(enforced: Release) -> None:
    for name in ("kube-system", "gpu-tiers"):
        answer = try_create(enforced.cluster, name, GPU_POD)
        assert "failed calling webhook" not in answer.stderr


def test_no_condition_ever_failed_to_evaluate(enforced: Release, namespace: str) -> None:
    bare: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}}
    bare["spec"] = {"containers": [{"name": "a", "image": "b"}]}
    pods = [*ASKED.values(), *LEFT_ALONE.values(), bare]
    everything = [*pods, deployment(), deployment(GPU), job(), cron_job()]
    together: Manifest = {"apiVersion": "v1", "kind": "List", "items": everything}
    answer = try_create(enforced.cluster, namespace, together)
    answers = len(answer.json()["items"]) + answer.stderr.count("Error from server")
    assert answers == len(everything), answer.stderr
    assert condition_errors(enforced.cluster) == 0


def deployment(main: Manifest | None = None, **metadata: object) -> Manifest:
    template = pod(labels={"app": "web"}, main=main)
    spec = {"selector": {"matchLabels": {"app": "web"}}, "replicas": 0}
    return workload("apps/v1", "Deployment", spec | {"template": template_of(template)}, **metadata)


def job(main: Manifest | None = None, **metadata: object) -> Manifest:
    return workload("batch/v1", "Job", {"template": template_of(pod(main=main, restartPolicy="Never"))}, **metadata)


def cron_job(main: Manifest | None = None) -> Manifest:
    return workload("batch/v1", "CronJob", {"schedule": "@daily", "jobTemplate": {"spec": job(main)["spec"]}})


def template_of(manifest: Manifest) -> Manifest:
    return {"metadata": {"labels": manifest["metadata"]["labels"]}, "spec": manifest["spec"]}


def workload(version: str, kind: str, spec: Manifest, **metadata: object) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", **metadata}, "spec": spec}


OWNED = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "r", "uid": "u", "controller": True}
NIGHTLY = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u", "controller": True}


def sharing() -> Manifest:
    manifest = deployment()
    manifest["spec"]["template"]["metadata"]["annotations"] = {"gpu-fraction": "0.5"}
    return manifest


WORKLOADS = {
    "a GPU Deployment": (deployment(GPU), "apps", 1),
    "a Deployment of time-slices that the policy does not list": (
        deployment(limits("nvidia.com/gpu.shared")),
        "apps",
        1,
    ),
    "a Deployment of another vendor's GPUs": (deployment(limits("aliyun.com/gpu-mem", "8")), "apps", 1),
    "a Deployment of parts of GPUs that the policy does not count": (sharing(), "apps", 1),
    "a Deployment of another device": (deployment(limits("devices.kubevirt.io/kvm")), "apps", 0),
    "a Deployment of no GPUs": (deployment(limits("nvidia.com/gpu", "0")), "apps", 0),
    "a CPU Deployment": (deployment(), "apps", 0),
    "a GPU Job": (job(GPU), "batch", 1),
    "a CPU Job": (job(), "batch", 0),
    "a GPU Job that a gang made": (job(GPU, ownerReferences=[OWNED]), "batch", 0),
    "a GPU Job of a CronJob": (job(GPU, ownerReferences=[NIGHTLY]), "batch", 1),
    "a GPU CronJob": (cron_job(GPU), "batch", 1),
    "a CPU CronJob": (cron_job(), "batch", 0),
}


@pytest.mark.parametrize("who", WORKLOADS)
def test_workloads_go_on_and_only_gpu_ones_are_asked_about(enforced: Release, namespace: str, who: str) -> None:
    manifest, group, calls = WORKLOADS[who]
    with forgiven(enforced.cluster, f"{group}.workloads.gpu-tiers.dev") as count:
        answer = try_create(enforced.cluster, namespace, manifest)
        assert not answer.code, answer.stderr
        assert count() == calls


def test_a_workload_is_asked_about_again_when_a_person_changed_it(
    enforced: Release, namespace: str, request: pytest.FixtureRequest
) -> None:
    cluster = enforced.cluster
    ours = {"gpu-tiers.dev/checkpoint": "signal", "gpu-tiers.dev/checkpoint-timeout": "60"}
    cluster.api.create(deployment(GPU, annotations=ours), namespace)
    request.addfinalizer(lambda: cluster.api.delete("deployment/web", namespace=namespace))
    for change, calls in (
        (["annotate", "deployment", "web", "note=1"], 0),
        (["annotate", "deployment", "web", "deployment.kubernetes.io/revision=7", "--overwrite"], 0),
        (["annotate", "deployment", "web", "gpu-tiers.dev/checkpoint=signl", "--overwrite"], 1),
        (["annotate", "deployment", "web", "gpu-tiers.dev/checkpoint=", "--overwrite"], 1),
        (["annotate", "deployment", "web", "gpu-tiers.dev/checkpiont=signal"], 1),
        (["annotate", "deployment", "web", "gpu-tiers.dev/python-path="], 1),
        (["annotate", "deployment", "web", "gpu-tiers.dev/checkpoint=signal", "note=1", "--overwrite"], 0),
        (["annotate", "deployment", "web", "gpu-tiers.dev/checkpoint-"], 0),
        (["patch", "deployment", "web", "-p", '{"metadata": {"annotations": null}}'], 0),
        (["patch", "deployment", "web", "-p", '{"metadata": {"finalizers": ["example.com/cleanup"]}}'], 0),
        (["patch", "deployment", "web", "--subresource=status", "-p", '{"status": {"observedGeneration": 1}}'], 0),
        (["scale", "deployment", "web", "--replicas=0"], 0),
        (["label", "deployment", "web", "gpu-tiers.dev/tier=gpu-batch"], 1),
        (["set", "image", "deployment/web", "main=example.com/other"], 1),
    ):
        with forgiven(cluster, "apps.workloads.gpu-tiers.dev") as count:
            cluster.kubectl(*change, "-n", namespace, "--dry-run=server")
            assert count() == calls, change


def test_a_workload_full_of_annotations_fails_no_condition(
    enforced: Release, namespace: str, request: pytest.FixtureRequest
) -> None:
    """The conditions do not look through them, which would take seconds: each change of them is reviewed.

    Shorter names than these, and so more of them, do not fit into the 256 KiB that an object's annotations have.
    """
    cluster, many = enforced.cluster, {f"{number:x}": "" for number in range(50_000)}
    cluster.api.create(deployment(GPU, annotations=many), namespace)
    request.addfinalizer(lambda: cluster.api.delete("deployment/web", namespace=namespace))
    with forgiven(cluster, "apps.workloads.gpu-tiers.dev") as count:
        cluster.api.annotate("deployment/web", {"note": "1"}, namespace)
        assert count()
    assert condition_errors(cluster) == 0


def test_gangs_go_on(enforced: Release, namespace: str) -> None:
    version = podgroup_version(enforced.cluster)
    if not version:
        pytest.skip("this cluster serves no PodGroups")
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    templates = {"podGroupTemplates": [{"name": "workers", **policy}]}
    for entry, kind, spec, owners, calls in (
        ("podgroups", "PodGroup", policy, [], 1),
        ("podgroups", "PodGroup", policy, [OWNED], 1),
        ("scheduling-workloads", "Workload", templates, [], 1),
        ("scheduling-workloads", "Workload", templates, [OWNED], 0),
    ):
        metadata = {"generateName": "gang-", "ownerReferences": owners}
        gang = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        with forgiven(enforced.cluster, f"{entry}.validate.gpu-tiers.dev") as count:
            answer = try_create(enforced.cluster, namespace, gang)
            assert not answer.code, answer.stderr
            assert count() == calls, (kind, owners)


def podgroup_version(cluster: Cluster) -> str | None:
    """The apiVersion of PodGroup that this cluster serves, if any."""
    try:
        place = cluster.api.path("podgroups.scheduling.k8s.io")
    except ApiError:
        return None
    return place.removeprefix("/apis/").partition("/namespaces/")[0]


def test_a_job_without_gpus_runs_its_course(enforced: Release, namespace: str) -> None:
    api = enforced.cluster.api
    api.create(job(), namespace)
    wait_until(lambda: bool(api.get("pods", namespace, labelSelector="job-name=web")["items"]), 240, "its pod")
    api.delete("job/web", namespace=namespace)


def test_a_part_of_a_gpu_is_asked_about_once_the_policy_counts_it(enforced: Release, namespace: str) -> None:
    sharing = [{"name": "nvidia.com/gpu"}, {"annotation": "gpu-fraction"}]
    enforced.upgrade(mode="Enforce", policy={"resources": sharing})
    try:
        half = annotated(pod(), gpu_fraction="0.5")
        wait_until_gpu_pods_are(enforced.cluster, refused=True, manifest=half)
        assert not try_create(enforced.cluster, namespace, annotated(pod(), gpu_memory="2000")).code
        assert not try_create(enforced.cluster, namespace, pod()).code
        assert part_changes_are_asked_about(enforced.cluster, namespace)
    finally:
        enforced.upgrade(mode="Enforce")


def part_changes_are_asked_about(cluster: Cluster, namespace: str) -> bool:
    """On a pod without one, which is created for this and deleted; another annotation goes through."""
    named = {**pod(), "metadata": {"name": "half"}}
    cluster.api.create(named, namespace)
    try:
        cluster.api.annotate("pod/half", {"note": "1"}, namespace)
        answers = [
            cluster.api.annotate("pod/half", change, namespace, check=False).stderr
            for change in ({"gpu-fraction": "0.5"}, {"gpu-fraction-num-devices": "2"}, {"gpu-memory": "1"})
        ]
    finally:
        cluster.api.delete("pod/half", namespace=namespace, seconds=0)
    return all('failed calling webhook "pods-update.validate.gpu-tiers.dev"' in each for each in answers)
