"""The checkpoint hook as a patch: preStop, grace and the folder; what the user wrote stays."""

import copy

import pytest

from tests.unit.admission.shapes import TOKEN, Tree, a_container, a_gpu_pod, a_pod, a_pytorchjob
from tests.unit.admission.world import World, a_policy

FOLDER = "/run/gpu-tiers"


def mount(container: str) -> dict[str, str]:
    """Where a container meets its hook: a folder of its own in the pod's volume."""
    return {"name": "gpu-tiers-checkpoint", "mountPath": FOLDER, "subPath": container}


VOLUME = {"name": "gpu-tiers-checkpoint", "emptyDir": {}}
JOB = a_pytorchjob()


async def mutated(pod: Tree, policy: str = "") -> Tree:
    """The pod after its patch; a second pass must leave it alone."""
    world = World(a_policy(policy), objects=(JOB,))
    patched = (await world.mutate(pod)).patched
    assert (await world.mutate(patched)).patch == []
    assert (await world.validate(world.stored(patched))).allowed
    return patched


async def test_a_training_pod_gets_hook_grace_and_folder() -> None:
    spec = (await mutated(a_gpu_pod(owner=JOB)))["spec"]
    container = spec["containers"][0]
    command = container["lifecycle"]["preStop"]["exec"]["command"]
    assert command[:2] == ["/bin/sh", "-c"]
    assert command[2].startswith(f"d={FOLDER}\n[ -e $d/listening ] || exit 0\n")
    assert spec["terminationGracePeriodSeconds"] == 130
    assert mount(container["name"]) in container["volumeMounts"]
    assert [volume["name"] for volume in spec["volumes"]] == [TOKEN, "gpu-tiers-checkpoint"]


async def test_a_serving_pod_gets_none() -> None:
    spec = (await mutated(a_gpu_pod(tier="gpu-serving")))["spec"]
    assert "lifecycle" not in spec["containers"][0]
    assert spec["terminationGracePeriodSeconds"] == 30


@pytest.mark.parametrize("absent", ["missing", None, []])
async def test_lists_that_are_absent_null_or_empty_are_made(absent: object) -> None:
    pod = a_gpu_pod(owner=JOB)
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    if absent == "missing":
        del spec["volumes"], container["volumeMounts"]
    else:
        spec["volumes"] = container["volumeMounts"] = absent
    spec = (await mutated(pod))["spec"]
    assert spec["volumes"] == [VOLUME]
    assert spec["containers"][0]["volumeMounts"] == [mount(spec["containers"][0]["name"])]


@pytest.mark.parametrize("lifecycle", [None, {}, {"preStop": None}])
async def test_a_lifecycle_that_says_nothing_is_filled(lifecycle: Tree | None) -> None:
    pod = a_gpu_pod(owner=JOB)
    pod["spec"]["containers"][0]["lifecycle"] = lifecycle
    assert "exec" in (await mutated(pod))["spec"]["containers"][0]["lifecycle"]["preStop"]


async def test_a_post_start_stays() -> None:
    pod = a_gpu_pod(owner=JOB)
    start = {"postStart": {"exec": {"command": ["true"]}}}
    pod["spec"]["containers"][0]["lifecycle"] = copy.deepcopy(start)
    lifecycle = (await mutated(pod))["spec"]["containers"][0]["lifecycle"]
    assert lifecycle["postStart"] == start["postStart"]
    assert "preStop" in lifecycle


async def test_a_pre_stop_of_the_users_own_is_never_touched() -> None:
    pod = a_gpu_pod(owner=JOB)
    own = {"preStop": {"httpGet": {"path": "/save", "port": 8080, "scheme": "HTTP"}}}
    pod["spec"]["containers"][0]["lifecycle"] = copy.deepcopy(own)
    spec = (await mutated(pod))["spec"]
    assert spec["containers"][0]["lifecycle"] == own
    assert spec["terminationGracePeriodSeconds"] == 30
    assert [volume["name"] for volume in spec["volumes"]] == [TOKEN]


async def test_only_containers_with_gpus_get_it() -> None:
    pod = a_pod(a_container("logs"), a_container("train", gpus="4"), a_container("eval", gpus="1"), owner=JOB)
    containers = (await mutated(pod))["spec"]["containers"]
    assert ["lifecycle" in container for container in containers] == [False, True, True]
    assert [mount(container["name"]) in container["volumeMounts"] for container in containers] == [False, True, True]


@pytest.mark.parametrize("path", [FOLDER, FOLDER + "/"])
async def test_a_folder_that_the_user_mounts_is_left_to_the_user(path: str) -> None:
    pod = a_gpu_pod(owner=JOB)
    pod["spec"]["volumes"].append({"name": "mine", "emptyDir": {"medium": "Memory"}})
    pod["spec"]["containers"][0]["volumeMounts"].append({"name": "mine", "mountPath": path})
    spec = (await mutated(pod))["spec"]
    assert spec["volumes"][-1]["name"] == "mine"
    assert [mount["name"] for mount in spec["containers"][0]["volumeMounts"]] == [TOKEN, "mine"]


async def test_a_longer_grace_stays() -> None:
    pod = a_gpu_pod(owner=JOB, terminationGracePeriodSeconds=3600)
    assert (await mutated(pod))["spec"]["terminationGracePeriodSeconds"] == 3600


async def test_what_we_add_to_the_grace_is_capped() -> None:
    policy = "checkpoint: {training: {kind: file, seconds: 7200}, maxGracePeriodSeconds: 600}\n"
    spec = (await mutated(a_gpu_pod(owner=JOB), policy))["spec"]
    assert spec["terminationGracePeriodSeconds"] == 600
    assert "[ $i -lt 590 ]" in spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][2]


async def test_sigterm_is_grace_alone() -> None:
    policy = "checkpoint: {training: {kind: sigterm, seconds: 300}}\n"
    spec = (await mutated(a_gpu_pod(owner=JOB), policy))["spec"]
    assert spec["terminationGracePeriodSeconds"] == 310
    assert "lifecycle" not in spec["containers"][0]


async def test_the_annotation_asks_for_another_kind() -> None:
    pod = a_gpu_pod(owner=JOB)
    pod["metadata"]["annotations"] = {"gpu-tiers.dev/checkpoint": "none"}
    spec = (await mutated(pod))["spec"]
    assert "lifecycle" not in spec["containers"][0]
    assert spec["terminationGracePeriodSeconds"] == 30


@pytest.mark.parametrize("mode", ["Audit", "Enforce"])
async def test_a_kind_of_hook_that_there_is_not_is_refused_by_its_name(mode: str) -> None:
    pod = a_gpu_pod(owner=JOB)
    pod["metadata"]["annotations"] = {"gpu-tiers.dev/checkpoint": "telepathy" * 100}
    world = World(a_policy(mode=mode), objects=(JOB,))
    assert (await world.mutate(pod)).patch == []
    answer = await world.validate(world.stored(pod))
    sentence = answer.sentence if mode == "Enforce" else answer.audit["would-refuse"]
    assert sentence.startswith('metadata.annotations[gpu-tiers.dev/checkpoint]: "telepathy')
    assert sentence.endswith("is no kind of hook; write one of file, sigterm, none")
    assert len(sentence) < 200
