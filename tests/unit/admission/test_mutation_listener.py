"""The hook kind `listen`: the listener as text in annotations, the files that Python finds, and when it can't be."""

import pytest

from tests.builders import PodBuilder, Tree, WorkloadBuilder, a_pod, a_policy, a_pytorchjob
from tests.builders.world import FakeApi
from webhook.policy.checkpoint.listen import listener_texts

KIND = "gpu-tiers.dev/checkpoint"
CODE = "/opt/gpu-tiers/python"
JOB = a_pytorchjob()
LISTENS = {KIND: "listen"}


async def mutated(pod: PodBuilder | Tree, *owners: WorkloadBuilder, **checkpoint: object) -> Tree:
    """The pod after its patch; a second pass must leave it alone."""
    world = FakeApi(*owners or (JOB,), policy=a_policy(checkpoint=checkpoint))
    patched = (await world.mutate(pod)).patched
    assert (await world.mutate(patched)).patch == []
    assert (await world.validate(world.stored(patched))).allowed
    return patched


def environment(pod: Tree, container: int = 0) -> dict[str, str]:
    return {each["name"]: each.get("value") for each in pod["spec"]["containers"][container].get("env", [])}


async def test_the_listener_travels_in_annotations_and_python_finds_it() -> None:
    pod = await mutated(a_pod().asking().owned_by(JOB).annotated(LISTENS))
    texts, notes = listener_texts(), pod["metadata"]["annotations"]
    assert notes["gpu-tiers.dev/listener-start"] == texts["sitecustomize.py"]
    assert notes["gpu-tiers.dev/listener"] == texts["gpu_tiers_listen.py"]
    volume = next(each for each in pod["spec"]["volumes"] if each["name"] == "gpu-tiers-listener")
    assert [(each["path"], each["fieldRef"]["fieldPath"]) for each in volume["downwardAPI"]["items"]] == [
        ("sitecustomize.py", "metadata.annotations['gpu-tiers.dev/listener-start']"),
        ("gpu_tiers_listen.py", "metadata.annotations['gpu-tiers.dev/listener']"),
    ]
    mount = {"name": "gpu-tiers-listener", "mountPath": CODE, "readOnly": True}
    assert mount in pod["spec"]["containers"][0]["volumeMounts"]
    assert environment(pod) == {"PYTHONPATH": CODE, "GPU_TIERS_RUN": JOB.json()["metadata"]["uid"]}


async def test_an_image_brings_it_where_one_is_named() -> None:
    image = "example.com/gpu-tiers:1.0"
    pod = await mutated(a_pod().asking().owned_by(JOB).annotated(LISTENS), listenerImage=image)
    assert not any("listener" in key for key in pod["metadata"]["annotations"])
    volume = {"name": "gpu-tiers-listener", "image": {"reference": image, "pullPolicy": "IfNotPresent"}}
    assert volume in pod["spec"]["volumes"]
    mount = pod["spec"]["containers"][0]["volumeMounts"][-1]
    assert mount == {
        "name": "gpu-tiers-listener",
        "mountPath": CODE,
        "readOnly": True,
        "subPath": "opt/gpu-tiers/python",
    }


async def test_a_cluster_may_want_it_for_all_training_and_a_forged_text_is_replaced() -> None:
    forged = a_pod().asking().owned_by(JOB).annotated({"gpu-tiers.dev/listener": "import evil"})
    pod = await mutated(forged, training={"kind": "listen", "pythonPath": "none"})
    assert pod["metadata"]["annotations"]["gpu-tiers.dev/listener"] == listener_texts()["gpu_tiers_listen.py"]


async def test_only_containers_with_gpus_get_it() -> None:
    pod = await mutated(a_pod().running("proxy", name="proxy").asking().owned_by(JOB).annotated(LISTENS))
    proxy, main = pod["spec"]["containers"]
    assert "env" not in proxy
    assert not any(each["name"] == "gpu-tiers-listener" for each in proxy["volumeMounts"])
    assert main["env"]


PATHS: dict[str, tuple[list[Tree], dict[str, str], str]] = {
    "its own stays behind ours": ([{"name": "PYTHONPATH", "value": "/app"}], {}, f"{CODE}:/app"),
    "the image's is appended": ([], {f"{KIND}-python-path": "/app:/lib"}, f"{CODE}:/app:/lib"),
    "the image has none": ([], {f"{KIND}-python-path": "none"}, CODE),
    "its own counts, not what is said of the image": (
        [{"name": "PYTHONPATH", "value": "/app"}],
        {f"{KIND}-python-path": "/lib"},
        f"{CODE}:/app",
    ),
}


@pytest.mark.parametrize("name", PATHS)
async def test_pythonpath(name: str) -> None:
    env, notes, expected = PATHS[name]
    before = [{"name": "FIRST", "value": "1"}, *env, {"name": "LAST", "value": "$(PYTHONPATH)"}]
    pod = await mutated(a_pod().asking(env=before).owned_by(JOB).annotated(LISTENS | notes))
    assert environment(pod)["PYTHONPATH"] == expected
    names = [each["name"] for each in pod["spec"]["containers"][0]["env"]]
    assert [each for each in names if each in {each["name"] for each in before}] == [each["name"] for each in before]


async def test_another_folder_is_reported_and_a_run_of_one_s_own_stays() -> None:
    env = [{"name": "GPU_TIERS_RUN", "value": "my-run"}]
    pod = a_pod().asking(env=env).owned_by(JOB).annotated(LISTENS | {f"{KIND}-path": "/data/hook"})
    assert environment(await mutated(pod)) == {
        "GPU_TIERS_RUN": "my-run",
        "PYTHONPATH": CODE,
        "GPU_TIERS_FOLDER": "/data/hook",
    }


FROM_SECRET = {"name": "PYTHONPATH", "valueFrom": {"secretKeyRef": {"name": "paths", "key": "python"}}}
OBSTACLES: dict[str, tuple[PodBuilder, str]] = {
    "a path from a secret": (
        a_pod().asking(env=[FROM_SECRET]),
        "PYTHONPATH of main may come from elsewhere; see checkpoint-python-path",
    ),
    "variables of a ConfigMap": (
        a_pod().asking(envFrom=[{"configMapRef": {"name": "all"}}]),
        "PYTHONPATH of main may come from elsewhere; see checkpoint-python-path",
    ),
    "another volume there": (
        a_pod()
        .asking(volumeMounts=[{"name": "opt", "mountPath": "/opt"}])
        .having("spec.volumes", [{"name": "opt", "hostPath": {"path": "/opt"}}]),
        f"a volume mount of container main overlaps {CODE}",
    ),
    "a volume of that name": (
        a_pod().asking().having("spec.volumes", [{"name": "gpu-tiers-listener", "emptyDir": {}}]),
        "the pod already has another volume named gpu-tiers-listener",
    ),
    "annotations that are full": (
        a_pod().asking().annotated({"notes.example.com/log": "x" * 250_000}),
        "with it the pod's annotations would exceed 262144 bytes",
    ),
    "python -I": (
        a_pod().asking(command=["bash", "-c", "exec python3 -u -I train.py"]),
        "container main runs Python with -E, -I or -S, which look for no listener",
    ),
    "an image without Python": (a_pod().asking(image="golang:1.27"), "image golang:1.27 has no Python"),
}


@pytest.mark.parametrize("name", OBSTACLES)
async def test_where_it_can_t_be_nothing_is_written_and_somebody_is_warned(name: str) -> None:
    pod, reason = OBSTACLES[name]
    world = FakeApi(JOB)
    answer = await world.mutate(pod.owned_by(JOB).annotated(LISTENS))
    assert "gpu-tiers.dev/listener" not in answer.patched["metadata"]["annotations"]
    assert "lifecycle" not in answer.patched["spec"]["containers"][0]
    job = a_pytorchjob(pod.annotated(LISTENS))
    assert f"[hook-ignored] no listen hook: {reason}" in (await world.validate(job)).warnings


async def test_envfrom_is_no_obstacle_once_the_path_is_named() -> None:
    pod = a_pod().asking(envFrom=[{"configMapRef": {"name": "all"}}]).owned_by(JOB)
    found = await mutated(pod.annotated(LISTENS | {f"{KIND}-python-path": "/app"}))
    assert environment(found)["PYTHONPATH"] == f"{CODE}:/app"


async def test_who_applies_it_reads_that_the_image_s_path_is_hidden() -> None:
    sentence = f"[python-path] the listener's PYTHONPATH hides the image's; name the image's in {KIND}-python-path"
    said = (await FakeApi().validate(a_pytorchjob(a_pod().asking().annotated(LISTENS)))).warnings
    assert sentence in said
    named = a_pod().asking().annotated(LISTENS | {f"{KIND}-python-path": "none"})
    assert sentence not in (await FakeApi().validate(a_pytorchjob(named))).warnings
