"""`gpu-tiers review` of workloads whose GPUs come by resource claims: the templates among the manifests tell them."""

from tests.unit.cli.reviewing import WORLD, findings, review

TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: team-alpha}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.nvidia.com, allocationMode: ExactCount, count: 4}
"""
IN_V1 = "exactly: {deviceClassName: gpu.nvidia.com, allocationMode: ExactCount, count: 4}"
IN_V1BETA1 = "deviceClassName: gpu.nvidia.com\n        allocationMode: ExactCount\n        count: 4"
JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: ranker, namespace: team-alpha}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]
          containers:
          - name: pytorch
            image: pytorch/pytorch:2.13.0
            resources: {claims: [{name: gpu}]}
"""


def test_a_workload_is_counted_by_the_template_beside_it() -> None:
    job, _ = findings("-f", "-", *WORLD, stdin=f"{JOB}---{TEMPLATE}")
    assert job["message"] == (
        "tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8 in all. Would fit: gpu-batch. "
        "See TenantQuota/alpha. [too-large]"
    )


def test_a_template_of_an_older_version_counts_too() -> None:
    older = TEMPLATE.replace("resource.k8s.io/v1", "resource.k8s.io/v1beta1").replace(IN_V1, IN_V1BETA1)
    assert "asks for 8 in all" in review("-f", "-", *WORLD, stdin=f"{older}---{JOB}")[1]


def test_a_pod_of_it_gets_the_hook() -> None:
    job = findings("-f", "-", stdin=f"{TEMPLATE}---{JOB}")[1]
    (pod,) = job["pods"]  # type: ignore[misc]
    assert pod["hooks"] == [{"kind": "file", "gracePeriodSeconds": 130, "containers": ["pytorch"]}]


def test_without_the_template_a_person_reads_what_is_missing() -> None:
    code, out, _ = review("-f", "-", *WORLD, stdin=JOB)
    assert code == 1
    assert out == (
        "PyTorchJob team-alpha/ranker (standard input:2)\n"
        "  tier: -\n"
        "  type: training, by its kind, PyTorchJob/ranker\n"
        "  warning: ResourceClaimTemplate/gpus is not among the objects given, so GPUs that the claim may ask for are "
        "not counted; the pods are refused until the claim can be read\n"
        "  its pod refused: ResourceClaimTemplate/gpus is not among the objects given, so gpu-tiers can't "
        "choose a tier [unreadable]\n\n"
    )


def test_a_template_is_read_and_not_reviewed() -> None:
    _, out, _ = review("-f", "-", stdin=TEMPLATE)
    assert out == (
        "ResourceClaimTemplate team-alpha/gpus (standard input:2)\n"
        "  left alone: it is used to review the other objects\n\n"
    )


CARDS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nic.example.com}
spec: {selectors: [{cel: {expression: device.driver == "nic.example.com"}}]}
"""


def test_a_claim_of_other_devices_is_no_gpu() -> None:
    claim = TEMPLATE.replace("gpu.nvidia.com", "nic.example.com")
    _, out, _ = review("-f", "-", *WORLD, stdin=f"{claim}---{CARDS}---{JOB}")
    assert "PyTorchJob team-alpha/ranker (standard input:17)\n  left alone: it asks for no GPU and no tier\n" in out
    assert "asks for 8 in all" in review("-f", "-", *WORLD, stdin=f"{claim}---{JOB}")[1], "it may be a GPU's class"


def test_a_count_below_zero_is_named() -> None:
    _, out, _ = review("-f", "-", stdin=f"{JOB}---{TEMPLATE.replace('count: 4', 'count: -4')}")
    assert 'ResourceClaimTemplate/gpus can\'t be read: count: "-4" is not a number of devices; write 1 or more' in out


def test_a_claim_that_was_read_is_not_called_unknown_for_a_gpu_that_does_not_count() -> None:
    nic = TEMPLATE.replace("gpu.nvidia.com", "nic.example.com")
    job = JOB.replace("      template:\n", '      template:\n        metadata: {annotations: {gpu-fraction: "0.5"}}\n')
    out = review("-f", "-", stdin=f"{job}---{CARDS}---{nic}")[1]
    assert "it asks for no GPU that counts: annotation gpu-fraction is not among the policy's resources" in out
    found = findings("-f", "-", stdin=f"{job}---{CARDS}---{nic}")
    assert found[0]["uncounted"] == ["annotation gpu-fraction"]
