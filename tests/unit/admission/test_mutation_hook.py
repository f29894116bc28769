"""The checkpoint hook as a patch: preStop, grace and the folder; what the user wrote stays."""

import pytest

from tests.builders import TOKEN, PodBuilder, Tree, WorkloadBuilder, a_job, a_pod, a_policy, a_pytorchjob
from tests.builders.world import FakeApi
from webhook.policy.checkpoint.hook_kinds import file_handler

FOLDER = "/run/gpu-tiers"


def mount(container: str) -> dict[str, str]:
    """Return the mount of a container's hook: a folder of its own in the pod's volume."""
    return {"name": "gpu-tiers-checkpoint", "mountPath": FOLDER, "subPath": container}


VOLUME = {"name": "gpu-tiers-checkpoint", "emptyDir": {}}
JOB = a_pytorchjob()


async def mutated(pod: PodBuilder | Tree, *owners: WorkloadBuilder, **checkpoint: object) -> Tree:
    """The pod after its patch; a second pass must leave it alone."""
    world = FakeApi(*owners or (JOB,), policy=a_policy(checkpoint=checkpoint))
    patched = (await world.mutate(pod)).patched
    assert (await world.mutate(patched)).patch == []
    assert (await world.validate(world.stored(patched))).allowed
    return patched


async def test_a_training_pod_gets_hook_grace_and_folder() -> None:
    spec = (await mutated(a_pod().asking().owned_by(JOB)))["spec"]
    container = spec["containers"][0]
    assert container["lifecycle"]["preStop"] == file_handler(FOLDER, 120)
    assert spec["terminationGracePeriodSeconds"] == 130
    assert mount(container["name"]) in container["volumeMounts"]
    assert [volume["name"] for volume in spec["volumes"]] == [TOKEN, "gpu-tiers-checkpoint"]


NAMED = a_job(name="train-bert")
"""Its name hints at training, which is too weak for the tier."""


@pytest.mark.parametrize(
    ("tier", "policy", "hooked"),
    [
        ("", {}, False),
        ("", {"raiseBy": "Hinted"}, True),
        ("gpu-training", {}, True),  # the label that the warning names
        ("gpu-batch", {}, False),
        ("", {"preset": "inference-first"}, True),  # training is the lower tier there
    ],
)
async def test_a_hint_that_is_too_weak_for_the_tier_brings_no_hook_either(
    tier: str, policy: dict[str, object], hooked: bool
) -> None:
    pod = a_pod().running("python", "main.py").asking(name="second").owned_by(NAMED)
    world = FakeApi(NAMED, policy=a_policy(**policy))
    patched = (await world.mutate(pod.of_tier(tier) if tier else pod)).patched
    assert (await world.mutate(patched)).patch == []
    assert (await world.validate(world.stored(patched))).allowed
    assert [("lifecycle" in each) for each in patched["spec"]["containers"]] == [False, hooked]


async def test_a_serving_pod_gets_none() -> None:
    spec = (await mutated(a_pod().asking().of_tier("gpu-serving")))["spec"]
    assert "lifecycle" not in spec["containers"][0]
    assert spec["terminationGracePeriodSeconds"] == 30


@pytest.mark.parametrize("absent", ["missing", None, []])
async def test_lists_that_are_absent_null_or_empty_are_made(absent: object) -> None:
    pod = FakeApi(JOB).sent(a_pod().asking().owned_by(JOB))
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
    pod = a_pod().asking(lifecycle=lifecycle).owned_by(JOB)
    assert "exec" in (await mutated(pod))["spec"]["containers"][0]["lifecycle"]["preStop"]


async def test_a_post_start_stays() -> None:
    start = {"postStart": {"exec": {"command": ["true"]}}}
    pod = a_pod().asking(lifecycle=start).owned_by(JOB)
    lifecycle = (await mutated(pod))["spec"]["containers"][0]["lifecycle"]
    assert lifecycle["postStart"] == start["postStart"]
    assert "preStop" in lifecycle


async def test_a_pre_stop_of_the_users_own_is_never_touched() -> None:
    own = {"preStop": {"httpGet": {"path": "/save", "port": 8080, "scheme": "HTTP"}}}
    spec = (await mutated(a_pod().asking(lifecycle=own).owned_by(JOB)))["spec"]
    assert spec["containers"][0]["lifecycle"] == own
    assert spec["terminationGracePeriodSeconds"] == 30
    assert [volume["name"] for volume in spec["volumes"]] == [TOKEN]


async def test_only_containers_with_gpus_get_it() -> None:
    pod = a_pod().running(name="logs").asking("4", name="train").asking("1", name="eval").owned_by(JOB)
    containers = (await mutated(pod))["spec"]["containers"]
    assert ["lifecycle" in container for container in containers] == [False, True, True]
    assert [mount(container["name"]) in container["volumeMounts"] for container in containers] == [False, True, True]


@pytest.mark.parametrize("path", [FOLDER, FOLDER + "/"])
async def test_a_folder_that_the_user_mounts_is_left_to_the_user(path: str) -> None:
    pod = a_pod().asking(volumeMounts=[{"name": "mine", "mountPath": path}]).owned_by(JOB)
    spec = (await mutated(pod.having("spec.volumes", [{"name": "mine", "emptyDir": {"medium": "Memory"}}])))["spec"]
    assert spec["volumes"][-1]["name"] == "mine"
    assert [mount["name"] for mount in spec["containers"][0]["volumeMounts"]] == [TOKEN, "mine"]


async def test_a_longer_grace_stays() -> None:
    pod = a_pod().asking().owned_by(JOB).having("spec.terminationGracePeriodSeconds", 3600)
    assert (await mutated(pod))["spec"]["terminationGracePeriodSeconds"] == 3600


async def test_sigterm_is_grace_alone() -> None:
    spec = (await mutated(a_pod().asking().owned_by(JOB), training={"kind": "sigterm", "seconds": 300}))["spec"]
    assert spec["terminationGracePeriodSeconds"] == 310
    assert "lifecycle" not in spec["containers"][0]


async def test_the_annotation_asks_for_another_kind() -> None:
    pod = a_pod().asking().owned_by(JOB).annotated({"gpu-tiers.dev/checkpoint": "none"})
    spec = (await mutated(pod))["spec"]
    assert "lifecycle" not in spec["containers"][0]
    assert spec["terminationGracePeriodSeconds"] == 30


PORTS = [{"name": "admin", "containerPort": 9000, "protocol": "TCP"}]
KINDS: dict[str, tuple[dict[str, str], Tree | None, int]] = {
    "http": (
        {"-port": "admin", "-path": "/save", "-timeout": "60"},
        {"httpGet": {"path": "/save", "port": 9000, "scheme": "HTTP"}},
        70,
    ),
    "exec": ({"-command": "save --all"}, {"exec": {"command": ["save", "--all"]}}, 130),
    "sigterm": ({"-timeout": "300"}, None, 310),
    "sleep": ({"-timeout": "40"}, {"sleep": {"seconds": 40}}, 50),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on_the_owner", [False, True])
async def test_every_kind_by_annotation_on_the_pod_and_through_its_owner(kind: str, on_the_owner: bool) -> None:
    fields, handler, grace = KINDS[kind]
    notes = {"gpu-tiers.dev/checkpoint" + field: value for field, value in {"": kind, **fields}.items()}
    owner = a_pytorchjob().annotated(notes) if on_the_owner else JOB
    pod = a_pod().asking(ports=PORTS).owned_by(owner).annotated({} if on_the_owner else notes)
    spec = (await mutated(pod, owner))["spec"]
    assert spec["containers"][0].get("lifecycle", {}).get("preStop") == handler
    assert spec["terminationGracePeriodSeconds"] == grace
    assert [volume["name"] for volume in spec["volumes"]] == [TOKEN]


async def test_the_signal_hook_has_its_folder() -> None:
    pod = a_pod().asking().owned_by(JOB).annotated({"gpu-tiers.dev/checkpoint": "signal"})
    spec = (await mutated(pod))["spec"]
    assert "kill -s USR1 1" in spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][2]
    assert mount("main") in spec["containers"][0]["volumeMounts"]


async def test_a_read_only_root_and_a_restricted_pod_change_nothing() -> None:
    """The folder is a volume of its own, and the hook runs as the container's user."""
    locked = {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    restricted = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    pod = a_pod().asking(securityContext=locked).owned_by(JOB).having("spec.securityContext", restricted)
    spec = (await mutated(pod))["spec"]
    assert spec["containers"][0]["securityContext"] == locked
    assert mount("main") in spec["containers"][0]["volumeMounts"]
    assert spec["volumes"][-1] == VOLUME


async def test_draining_by_the_tier_of_serving() -> None:
    drains = {"gpu-serving": {"kind": "sleep", "seconds": 40}}
    spec = (await mutated(a_pod().asking().of_tier("gpu-serving"), tiers=drains))["spec"]
    assert spec["containers"][0]["lifecycle"] == {"preStop": {"sleep": {"seconds": 40}}}
    assert spec["terminationGracePeriodSeconds"] == 50


@pytest.mark.parametrize("env", ["missing", None, [{"name": "A", "value": "1"}]])
async def test_torchrun_is_given_the_time_of_a_save_at_sigterm(env: object) -> None:
    written = {} if env == "missing" else {"env": env}
    pod = a_pod().asking(command=["torchrun", "train.py"], **written).owned_by(JOB)
    spec = (await mutated(pod, training={"kind": "sigterm", "seconds": 300}))["spec"]
    there = env if isinstance(env, list) else []
    assert spec["containers"][0]["env"] == [*there, {"name": "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "value": "300"}]


@pytest.mark.parametrize("mode", ["Audit", "Enforce"])
async def test_a_kind_of_hook_that_there_is_not_is_refused_by_its_name(mode: str) -> None:
    pod = a_pod().asking().owned_by(JOB).annotated({"gpu-tiers.dev/checkpoint": "telepathy" * 100})
    world = FakeApi(JOB, policy=a_policy(mode=mode))
    assert (await world.mutate(pod)).patch == []
    answer = await world.validate(world.stored(pod))
    sentence = answer.sentence if mode == "Enforce" else answer.audit["would-refuse"]
    assert sentence.startswith('metadata.annotations[gpu-tiers.dev/checkpoint]: "telepathy')
    assert "is not a kind of hook; write one of file, listen, http, exec, signal, sigterm, sleep, none" in sentence
    assert len(sentence) < 230


EVICTABLE = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
LISTS = {
    "none": ({}, "gpu-tiers-checkpoint"),
    "an empty one": ({EVICTABLE: ""}, "gpu-tiers-checkpoint"),
    "the author's": ({EVICTABLE: "cache,scratch"}, "cache,scratch,gpu-tiers-checkpoint"),
    "with spaces, which belong to the names": ({EVICTABLE: "cache, scratch"}, "cache, scratch,gpu-tiers-checkpoint"),
    "one that names it": ({EVICTABLE: "gpu-tiers-checkpoint,cache"}, "gpu-tiers-checkpoint,cache"),
}


@pytest.mark.parametrize("kind", ["file", "listen", "signal"])
@pytest.mark.parametrize("name", LISTS)
async def test_our_volume_does_not_keep_the_autoscaler_from_removing_a_node(name: str, kind: str) -> None:
    annotations, listed = LISTS[name]
    pod = a_pod().asking().owned_by(JOB).annotated(annotations)
    assert (await mutated(pod, training={"kind": kind}))["metadata"]["annotations"][EVICTABLE] == listed


@pytest.mark.parametrize("said", ["true", "false"])
async def test_what_the_author_says_of_evicting_the_pod_stays(said: str) -> None:
    pod = await mutated(a_pod().asking().owned_by(JOB).annotated({SAFE: said}))
    assert pod["metadata"]["annotations"][SAFE] == said


async def test_a_pod_without_our_volume_has_no_list_of_ours() -> None:
    mounted = {"name": "data", "mountPath": FOLDER}
    pods = {
        "no hook": a_pod().asking().of_tier("gpu-serving"),
        "a folder of the author": a_pod().asking(volumeMounts=[mounted]).owned_by(JOB),
    }
    for name, pod in pods.items():
        assert EVICTABLE not in (await mutated(pod))["metadata"]["annotations"], name
    http = await mutated(a_pod().asking().owned_by(JOB), training={"kind": "http", "port": 8080})
    assert EVICTABLE not in http["metadata"]["annotations"]
