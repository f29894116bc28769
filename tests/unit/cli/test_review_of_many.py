"""Objects beside one another in files: which belongs to which, and that their order changes nothing."""

import os
import subprocess
import sys
from pathlib import Path

from tests.unit.cli.reviewing import findings, review

RUN = """\
apiVersion: tekton.dev/v1
kind: TaskRun
metadata: {%s, labels: {gpu-tiers.dev/tier: %s}}
spec:
  taskSpec:
    steps:
    - {name: test, image: cuda, computeResources: {limits: {nvidia.com/gpu: 1}}}
"""


def test_a_workload_that_is_yet_to_be_named_makes_pods_too() -> None:
    (found,) = findings("-f", "-", stdin=RUN % ("generateName: gpu-tests-", "gpu-batch"))
    assert (found["name"], found["tier"], found["allowed"]) == ("gpu-tests-*", "gpu-batch", True)


def test_two_workloads_of_one_name_are_judged_each_by_itself(tmp_path: Path) -> None:
    """A folder of overlays: each has the same objects, and neither says its namespace."""
    for overlay, tier in (("production", "gpu-serving"), ("staging", "gpu-interactive")):
        (tmp_path / f"{overlay}.yaml").write_text(RUN % ("name: gpu-tests", tier))
    pods = [found["pods"][0]["tier"] for found in findings("-f", str(tmp_path))]  # type: ignore[index]
    assert pods == ["gpu-serving", "gpu-interactive"]


CHAIN = """apiVersion: apps/v1
kind: %s
metadata: {name: chat%s}
spec:
  template:
    spec: {containers: [{name: main, image: vllm/vllm-openai, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""


def test_a_pod_its_replicaset_and_its_deployment_need_no_uids() -> None:
    def owned_by(api_version: str, kind: str) -> str:
        owner = f"{{apiVersion: {api_version}, kind: {kind}, name: chat, controller: true}}"
        return f", ownerReferences: [{owner}]"

    deployment = CHAIN % ("Deployment", ", labels: {gpu-tiers.dev/tier: gpu-serving}")
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: chat-1{owned_by('apps/v1', 'ReplicaSet')}}}\nspec:\n"
    pod += "  containers: [{name: main, image: vllm/vllm-openai, resources: {limits: {nvidia.com/gpu: 1}}}]\n"
    chain = "---\n".join((deployment, CHAIN % ("ReplicaSet", owned_by("apps/v1", "Deployment")), pod))
    assert [found["tier"] for found in findings("-f", "-", stdin=chain)] == ["gpu-serving"] * 3


def test_the_order_of_a_folder_and_of_hashes_changes_nothing(tmp_path: Path) -> None:
    """Programs compare what is said of a folder between two commits."""
    manifests = sorted((Path(__file__).parents[2] / "workloads" / "golden" / "kinds").glob("*.yaml"))
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, order in ((one, manifests), (other, manifests[::-1])):
        folder.mkdir()
        for file in order:
            (folder / file.name).write_text(file.read_text())
    _, here, _ = review("-f", str(one))
    assert here.count("tier: gpu-") > 40
    command = [str(Path(sys.executable).with_name("gpu-tiers")), "review", "-f", str(other)]
    seeded = os.environ | {"PYTHONHASHSEED": "2"}
    assert subprocess.run(command, env=seeded, stdout=subprocess.PIPE, text=True, check=False).stdout == here.replace(
        str(one), str(other)
    )
