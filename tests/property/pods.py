"""Pods as hypothesis makes them: every part that the webhook reads or writes, present, absent, null or empty."""

from typing import Any, get_args

from hypothesis import strategies as st

from tests.builders import Tree, a_pod, a_pytorchjob, a_replicaset
from tests.builders.world import FakeApi
from webhook.admission.patch import VOLUME
from webhook.policy.placement import CLUSTER_AUTOSCALER, KARPENTER
from webhook.policy.values.tier_policy import HookKind

PRIORITY = FakeApi()
TIERS = {"gpu-training": 1000, "gpu-serving": 800, "gpu-batch": 400, "gpu-interactive": 200}
FOLDER = "/run/gpu-tiers"
TIMEOUT = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
OWNERS = (a_pytorchjob(workers=3), a_replicaset(a_pod().asking().labelled({"app": "chat"}), replicas=3))
"""What may have made a pod."""
_OPERATORS_LABELS = ({"training.kubeflow.org/job-name": "work"}, {"app": "chat", "pod-template-hash": "5d9"})
_key = st.sampled_from(["app", "a/b", "a~b", "~1", "~", "example.com/team~a/x", "gpu-tiers.dev/tier~"])
_text = st.text(max_size=8)
_told = st.sampled_from(["true", "false", "24h", ""]) | _text
_absent: st.SearchStrategy[Any] = st.sampled_from([None, "ABSENT"])


def _maps(own: st.SearchStrategy[Tree]) -> st.SearchStrategy[Any]:
    """A map of strings that may be absent, null or empty, with some of our own keys in it."""
    return _absent | st.builds(lambda theirs, ours: {**theirs, **ours}, st.dictionaries(_key, _text, max_size=3), own)


_labels = _maps(
    st.fixed_dictionaries(
        {},
        optional={
            "gpu-tiers.dev/tier": st.sampled_from([*TIERS, "", "none-such", "x" * 10_000]),
            "training.kubeflow.org/job-name": _text,
            "notebook-name": _text,
            "ray.io/cluster": _text,
            "kueue.x-k8s.io/queue-name": _text,
            "kueue.x-k8s.io/priority-class": st.sampled_from(["gpu-training", "house"]),
            "kai.scheduler/queue": _text,
            "kai.scheduler/preemptibility": _text,
        },
    )
)
_annotations = _maps(
    st.fixed_dictionaries(
        {},
        optional={
            "scheduling.volcano.sh/queue-name": _text,
            KARPENTER: _told,
            CLUSTER_AUTOSCALER: _told,
            "gpu-tiers.dev/checkpoint": st.sampled_from([*get_args(HookKind), *get_args(HookKind), "telepathy"]),
            "gpu-tiers.dev/checkpoint-timeout": st.sampled_from(["20", "300"]),
            "gpu-tiers.dev/checkpoint-port": st.sampled_from(["8080", "admin", "0"]),
            "gpu-tiers.dev/checkpoint-command": st.sampled_from(['["save", "x y"]', "save --all", "[1]"]),
            "gpu-tiers.dev/checkpoint-signal": st.sampled_from(["SIGUSR2", "HUP"]),
            "gpu-tiers.dev/checkpoint-done-file": st.sampled_from(["/data/done", "/run/gpu-tiers/saved"]),
            "gpu-tiers.dev/checkpoint-path": st.sampled_from(["/data/hook", "/work", "/run/gpu-tiers"]),
            "gpu-tiers.dev/assigned-by": st.sampled_from(
                [
                    "policy-default: the policy's default",
                    "label: the label on the pod says gpu-training; demoted from gpu-training to gpu-batch",
                    "class: priorityClassName is gpu-batch",
                    "; demoted from ",
                    "x" * 5_000,
                ]
            )
            | _text,
        },
    )
)
_pre_stop = st.none() | st.just({"exec": {"command": ["save"]}}) | st.just({"sleep": {"seconds": 5}})
_lifecycles: st.SearchStrategy[Any] = (
    _absent | st.just({}) | st.builds(lambda stop: {"preStop": stop, "postStart": {"sleep": {"seconds": 1}}}, _pre_stop)
)
_mounts = _absent | st.lists(
    st.builds(
        lambda name, path: {"name": name, "mountPath": path},
        st.sampled_from(["data", VOLUME]),
        st.sampled_from(["/data", FOLDER, FOLDER + "/", "/run"]),
    ),
    max_size=3,
)
_env = _absent | st.lists(st.sampled_from([{"name": "A", "value": "/data"}, {"name": TIMEOUT, "value": "7"}]))
_ports = _absent | st.lists(st.sampled_from([{"containerPort": 8080}, {"name": "admin", "containerPort": 9000}]))
_volumes = _absent | st.lists(st.sampled_from([{"name": "data", "emptyDir": {}}, {"name": VOLUME, "emptyDir": {}}]))
_terms = st.sampled_from([{"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "rack"}])
_to_pods = _absent | st.dictionaries(st.just("requiredDuringSchedulingIgnoredDuringExecution"), st.lists(_terms))
_to_nodes = _absent | st.just(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["mine"]}]}]
        }
    }
)
_affinities: st.SearchStrategy[Any] = _absent | st.builds(
    lambda nodes, near, far: _without_absent({"nodeAffinity": nodes, "podAffinity": near, "podAntiAffinity": far}),
    _to_nodes,
    _to_pods,
    _to_pods,
)
_tolerations = _absent | st.lists(
    st.sampled_from(
        [{"operator": "Exists"}, {"key": "pool", "value": "mine", "effect": "NoSchedule"}, {"key": "nvidia.com/gpu"}]
    ),
    max_size=2,
)
_placing = st.fixed_dictionaries(
    {},
    optional={
        "affinity": _affinities,
        "tolerations": _tolerations,
        "topologySpreadConstraints": _absent | st.lists(st.just({"maxSkew": 1, "topologyKey": "rack"}), max_size=1),
        "nodeSelector": _absent | st.dictionaries(st.sampled_from(["pool", "a/b~c"]), st.just("mine")),
        "activeDeadlineSeconds": _absent | st.sampled_from([1, 86_400]),
        "nodeName": st.sampled_from(["ABSENT", "ABSENT", "ABSENT", "gpu-1"]),
        "schedulerName": st.sampled_from(["default-scheduler", "volcano", "kai-scheduler", "our-kai", "bin-packer"]),
    },
)
_gpus = st.sampled_from([None, 0, 1, "2", "8", "1k", 3.0, "8000m"])
_classes = st.none() | st.sampled_from([*TIERS, "system-node-critical", "gpu-batch-nonpreempting"])


def _without_absent(tree: Tree) -> Tree:
    return {key: value for key, value in tree.items() if value != "ABSENT"}


@st.composite
def containers(draw: st.DrawFn) -> Tree:
    """A container, with GPUs or without."""
    more: Tree = {
        "lifecycle": draw(_lifecycles),
        "volumeMounts": draw(_mounts),
        "env": draw(_env),
        "ports": draw(_ports),
    }
    more["command"] = draw(st.sampled_from([None, ["torchrun", "train.py"], ["sh", "-c", "train; sync"]]))
    if draw(st.booleans()):
        more["restartPolicy"] = draw(st.sampled_from(["Always", None]))
    name, gpus = draw(st.sampled_from(["main", "train", "vllm"])), draw(_gpus)
    one = a_pod().running(name=name) if gpus is None else a_pod().asking(gpus, name=name)
    (sent,) = one.sent()["spec"]["containers"]
    return _without_absent(sent | more)


@st.composite
def pods(draw: st.DrawFn) -> Tree:
    """A pod that an API server could send: its types are right, its wishes need not be."""
    class_name = draw(_classes)
    pod = PRIORITY.sent(a_pod() if class_name is None else a_pod().of_class(class_name))
    parts: Tree = {
        "containers": draw(st.lists(containers(), min_size=1, max_size=3)),
        "volumes": draw(_volumes),
        "terminationGracePeriodSeconds": draw(_absent | st.sampled_from([0, 1, 30, 130, 600, 86_400])),
        "initContainers": draw(_absent | st.lists(containers(), max_size=2)),
    }
    pod["spec"] = _without_absent(pod["spec"] | parts | draw(_placing))
    pod["metadata"] = _without_absent(
        pod["metadata"] | {"labels": draw(_labels), "annotations": draw(_annotations), "name": "p"}
    )
    for owner, labels in zip(OWNERS, _OPERATORS_LABELS, strict=True):
        if draw(st.integers(0, 2)) == 0 and "ownerReferences" not in pod["metadata"]:
            pod["metadata"]["ownerReferences"] = [owner.reference()]
            pod["metadata"]["labels"] = (pod["metadata"].get("labels") or {}) | draw(st.sampled_from([labels, {}]))
    return pod
