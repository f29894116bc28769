"""The listener from an image, which the policy names: the kubelet mounts it, and starts no pod without it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demonstration.frameworks import stock, stock_programs, with_frameworks
from demonstration.preemption import GPUS
from demonstration.programs import CRITICAL, STEP_SECONDS
from demonstration.steps import last_step, starts
from demonstration.watching import Watched, reasons
from demonstration.workloads import Tree, create, gpu_pod, keeping_data, publish_code, training_job
from installation.examples import example_policy
from installation.image import project_image_name
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until
from tests.frameworks.environments import torch_in_pods
from webhook.policy.checkpoint.listen import listener_texts

from .backoff import forget_the_backoff
from .release import Release
from .test_listen import FOLDER, LISTEN, begin, looking, seen

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("by_image")]

IMAGE = "127.0.0.1:1/gpu-tiers:1"
"""No registry is there, which is known at once."""
SECONDS = 240


@pytest.fixture(scope="module")
def by_image(release: Release) -> Iterator[None]:
    """The policy names an image that no registry has. New pods of the webhook read the policy at once."""
    policy = example_policy() | {"checkpoint": {"listenerImage": IMAGE}}
    release.upgrade(policy=policy, podAnnotations={"policy": "with an image"})
    wait_until(lambda: release.pods() == 2, SECONDS, "the pods that knew the old policy to be gone")
    yield
    release.upgrade()
    wait_until(lambda: release.pods() == 2, SECONDS, "the pods that knew the image to be gone")


def push(node: NodeCluster) -> None:
    """Let the node have the image: that of the webhook itself, under another name."""
    subprocess.run(node.ctr("images", "tag", "--force", project_image_name(), IMAGE), check=True)


def waits_for(node: NodeCluster, namespace: str) -> str:
    """The reason and the message for which the pod's container has not started; empty before there is one."""
    pods = node.api.get("pods", namespace)["items"]
    statuses = [status for pod in pods for status in pod["status"].get("containerStatuses", [])]
    return " ".join(str(value) for each in statuses for value in each["state"].get("waiting", {}).values())


def test_the_pod_says_which_image_is_missing_and_starts_once_it_is_there(
    node: NodeCluster, namespace: str, data: Path
) -> None:
    begin(node, namespace, training_job(looking(data), LISTEN))
    wait_until(lambda: "ImagePull" in waits_for(node, namespace), SECONDS, "the kubelet's words")
    said = waits_for(node, namespace)
    assert IMAGE in said, said
    push(node)
    found = seen(data)
    assert found["files"] == listener_texts(), "byte for byte"
    assert found["says"] == ["Read-only file system"] * 2
    assert found["env"]["PYTHONPATH"] == f"{FOLDER}:/code", "its own stays behind ours"
    assert found["first finder"] == "sitecustomize._Finder", "Python ran our sitecustomize"
    assert found["hidden"].startswith(("/usr/lib/python3", "/etc/python3")), "and then Debian's, which ours hides"


def test_where_the_whole_image_is_mounted_python_finds_it_too(node: NodeCluster, namespace: str, data: Path) -> None:
    """containerd 2.1 mounts the whole image. The pod asks for no GPUs, so the webhook ignores it."""
    push(node)
    pod = keeping_data(gpu_pod("looking", "python3", "/code/look.py", gpus=0), data)
    pod["spec"]["volumes"].append({"name": "whole", "image": {"reference": IMAGE}})
    (main,) = pod["spec"]["containers"]
    main["volumeMounts"].append({"name": "whole", "mountPath": FOLDER})
    main["env"] = [{"name": "PYTHONPATH", "value": FOLDER}]
    begin(node, namespace, pod)
    found = seen(data)
    assert found["files"] == listener_texts()
    assert found["first finder"] == "sitecustomize._Finder"


def stock_training(folder: Path) -> Tree:
    """A Job that takes all GPUs, of a program that knows nothing of gpu-tiers."""
    shell = f"{{ {stock('stock_huggingface.py', STEP_SECONDS)}; }} >> /data/steps"
    pod = gpu_pod("unused", "sh", "-c", shell, gpus=GPUS, tier="gpu-batch")
    return training_job(with_frameworks(keeping_data(pod, folder)), LISTEN)


@pytest.mark.release
@pytest.mark.timeout(3600)  # it may install torch
def test_a_program_that_knows_nothing_saves_by_it_and_resumes(node: NodeCluster, namespace: str, data: Path) -> None:
    torch_in_pods()
    push(node)
    publish_code(node, namespace, **stock_programs())
    create(node, namespace, stock_training(data))
    watched = Watched(node, namespace)
    try:
        wait_until(lambda: last_step(data) >= 10, SECONDS, "ten steps")
        pod = node.api.get("pods", namespace)["items"][0]
        assert [each["image"]["reference"] for each in pod["spec"]["volumes"] if "image" in each] == [IMAGE]
        critical = gpu_pod("critical", "python3", "-c", CRITICAL, tier="gpu-serving")
        create(node, namespace, keeping_data(critical, data))
        here = f"--namespace={namespace}"
        node.kubectl("wait", "--for=condition=Ready", "pod/critical", here, f"--timeout={SECONDS}s")
        uid = pod["metadata"]["uid"]
        wait_until(lambda: watched.exit_codes(uid), SECONDS, "the end of the training")
        assert watched.exit_codes(uid) == {143}
        assert "Preempted" in reasons(node, namespace, uid)
        reached = last_step(data)
        node.api.delete("pod/critical", namespace=namespace)
        forget_the_backoff(node)
        wait_until(lambda: len(starts(data)) == 2, SECONDS, "the next pod")
        assert starts(data) == [0, reached], "no step is lost"
    finally:
        watched.end()
