"""Short histories of honest people who were wronged: none of them may fail in any rule of the oracle."""

from typing import Any

History = dict[str, Any]
Action = dict[str, Any]


def story(exceed: str, *actions: Action, gpus: int, training: int = 0, nodes: int = 4, slow: bool = False) -> History:
    """A history in two namespaces of one tenant, with a total of `gpus` and, if given, a row of `training`.

    `nodes`: of 8 GPUs each; 0 for a single one with two GPUs. `slow`: requests take their time and watches lag.
    """
    rows: list[dict[str, Any]] = [{"tier": "gpu-training", "gpus": training}] if training else []
    return {
        "seed": 1,
        "latency": 0.003 if slow else 0,
        "lag": 0.02 if slow else 0,
        "tenants": [{"name": "alpha", "rows": [*rows, {"gpus": gpus}], "onExceed": exceed}],
        "namespaces": {"alpha-a": "alpha", "alpha-b": "alpha"},
        "nodes": [(8, None)] * nodes or [(2, None)],
        "flavors": [],
        "actions": list(actions),
    }


def apply(kind: str, name: str, after: float = 0, **more: Any) -> Action:
    usual = {"ns": "alpha-a", "gpus": 1, "tier": "gpu-training"}
    return {"t": after, "do": "apply", "kind": kind, "name": name, **usual, **more}


def do(what: str, after: float = 0, **more: Any) -> Action:
    return {"t": after, "do": what, **more}


def blind(kind: str, seconds: float) -> Action:
    return do("blind", kind=kind, s=seconds)


STORIES: dict[str, History] = {
    # A gang that the leader does not see yet, or sees as it was, is not admitted in part.
    "the watch of Jobs begins again": story(
        "Hold",
        apply("Pod", "first", gpus=2),
        do("wait", 20),
        do("watch ends", kind="Job"),
        apply("Job", "gang", count=2, run=30),
        gpus=3,
    ),
    "the watch of Jobs lags behind that of pods": story(
        "Hold",
        do("wait", 20),
        blind("Job", 0.8),
        apply("Job", "one", count=3, run=30),
        apply("Job", "two", count=3, run=30),
        do("wait", 100),
        gpus=4,
    ),
    "the watch of PyTorchJobs lags behind that of pods": story(
        "Hold",
        do("wait", 20),
        blind("PyTorchJob", 0.8),
        apply("PyTorchJob", "one", count=2, run=30),
        apply("PyTorchJob", "two", count=2, run=30),
        do("wait", 100),
        gpus=4,
    ),
    "the policy is reloaded while two gangs come": story(
        "Hold",
        apply("Pod", "first", gpus=2, run=15),
        do("wait", 5),
        do("policy"),
        apply("Job", "one", count=3, run=30),
        apply("Job", "two", count=3, run=30),
        do("wait", 60),
        gpus=4,
        slow=True,
    ),
    "a suspended gang is resumed while the watch lags": story(
        "Hold",
        apply("Pod", "first", gpus=2),
        apply("Job", "gang", 5, count=2, run=30, suspend=True),
        do("wait", 20),
        blind("Job", 0.5),
        do("resume", name="gang"),
        gpus=3,
    ),
    "a suspended PyTorchJob is resumed while the watch lags": story(
        "Hold",
        apply("Pod", "first", gpus=2),
        apply("PyTorchJob", "gang", 5, count=2, run=30, suspend=True),
        do("wait", 20),
        blind("PyTorchJob", 0.5),
        do("resume", name="gang"),
        gpus=4,
    ),
    # The GPUs of a gang that is deleted in the foreground are free as its pods end.
    "a Job whose pods failed is deleted in the foreground": story(
        "Deny",
        apply("Job", "gang", count=4, linger=25, run=60, completions=8),
        do("wait", 20),
        do("failpod", name="gang", i=0),
        do("failpod", name="gang", i=0),
        do("delete", name="gang", how="foreground"),
        do("wait", 8),
        apply("Pod", "next"),
        gpus=4,
    ),
    # The pods of each gang count, whatever else the account has.
    "a gang waits to grow while it and another one run": story(
        "Hold",
        apply("LeaderWorkerSet", "one", size=2),
        apply("LeaderWorkerSet", "two", size=2),
        do("scale", 8, name="two", to=2, how="scale"),
        do("wait", 5),
        gpus=4,
    ),
    # A warning tells what becomes of the pods.
    "a tenant that warns is told of pods that run": story(
        "Warn",
        apply("Deployment", "first", count=3),
        apply("Job", "second", 5),
        do("scale", 5, name="first", to=4, how="apply"),
        gpus=2,
    ),
    "a tenant that demotes is told of pods that run lower": story(
        "Demote",
        apply("Deployment", "first", count=3),
        apply("Job", "second", 5),
        do("scale", 5, name="first", to=4, how="apply"),
        gpus=8,
        training=2,
    ),
    # A Job asks only for the pods that have to succeed yet.
    "the last pod of a Job runs, Deny": story(
        "Deny",
        apply("Job", "tail", count=3, run=60, completions=4),
        apply("Pod", "next", 80, gpus=2),
        do("wait", 60),
        gpus=4,
    ),
    "the last pod of a Job runs, Hold": story(
        "Hold",
        apply("Job", "tail", count=4, run=40, completions=5),
        apply("Pod", "next", 55, gpus=2),
        do("wait", 60),
        gpus=4,
    ),
    "a Job with one pod to go is resumed, Deny": story(
        "Deny",
        apply("Job", "half", count=3, run=10, completions=4),
        do("suspend", 14, name="half"),
        apply("Pod", "other", 2, gpus=3),
        do("resume", 5, name="half"),
        gpus=4,
    ),
    "a Job with one pod to go is resumed, Hold": story(
        "Hold",
        apply("Job", "half", count=3, run=10, completions=4),
        do("suspend", 14, name="half"),
        apply("Pod", "other", 2, gpus=3),
        do("resume", 5, name="half"),
        gpus=4,
    ),
    # A pod that takes the slot of another one in a full row keeps its tier.
    "a preempted pod is replaced in a full row, Demote": story(
        "Demote",
        apply("Deployment", "serve", count=2, linger=8),
        do("wait", 10),
        do("urgent", name="urgent-1", gpus=1, run=30),
        do("wait", 60),
        gpus=8,
        training=2,
        nodes=0,
    ),
    "a rollout in a full row, Demote": story(
        "Demote",
        apply("Deployment", "serve", count=2, surge=0, unav=1),
        do("wait", 10),
        do("rollout", name="serve", to=2),
        do("wait", 30),
        gpus=8,
        training=2,
        slow=True,
    ),
    "a StatefulSet loses a pod in a full row, Demote": story(
        "Demote",
        apply("StatefulSet", "serve", count=2, parallel=True),
        do("wait", 10),
        do("killpod", name="serve", i=0),
        do("wait", 30),
        gpus=8,
        training=2,
        slow=True,
    ),
    "a preempted Job tries again in a full row, Demote": story(
        "Demote",
        apply("Job", "train", gpus=2, linger=20),
        do("wait", 10),
        do("urgent", name="urgent-1", gpus=1, run=30),
        do("wait", 100),
        gpus=8,
        training=2,
        nodes=0,
    ),
    # A gang whose growth demoted it gets all of its new pods, whichever replica is asked.
    "a scale demotes a gang while a replica lags": {
        **story(
            "Demote",
            apply("PyTorchJob", "train", gpus=2, run=60),
            do("scale", 10, name="train", to=4, how="scale"),
            do("wait", 20),
            gpus=20,
            training=4,
        ),
        "latency": 0.01,
        "lag": 0.3,
        "seed": 2,
    },
    # A gang that was demoted keeps its tier, whatever happens above the quota later.
    **{
        f"a demoted gang loses a pod after onExceed has become {later}": story(
            "Demote",
            apply("Pod", "first", gpus=6, run=300),
            apply("PyTorchJob", "train", 5, count=3, run=200),
            do("onexceed", 10, tenant="alpha", to=later),
            do("killpod", 5, name="train", i=0),
            do("wait", 60),
            gpus=20,
            training=6,
            slow=True,
        )
        for later in ("Deny", "Hold")
    },
    # A controller whose creates a ResourceQuota refuses holds the GPUs of the pods that it wants, and no more.
    "a Deployment tries again and again, Deny": story(
        "Deny",
        do("quota full", ns="alpha-a", s=30),
        apply("Deployment", "large", gpus=8),
        do("wait", 20),
        gpus=8,
    ),
    "a Deployment tries again and again, and another namespace wants the rest": story(
        "Deny",
        do("quota full", ns="alpha-a", s=30),
        apply("Deployment", "large", gpus=2),
        apply("Pod", "rest", 20, ns="alpha-b", gpus=2),
        gpus=4,
    ),
    "a Job tries again and again, and another namespace wants the rest": story(
        "Deny",
        do("quota full", ns="alpha-a", s=30),
        apply("Job", "large", count=2, gpus=1, run=60),
        apply("Pod", "rest", 20, ns="alpha-b", gpus=2),
        gpus=4,
    ),
    "the create of a gang's pod is refused after us once": story(
        "Deny",
        apply("Job", "gang", count=2, run=60),
        do("lose"),
        do("wait", 20),
        gpus=2,
    ),
    "workers of an elastic gang beyond its minimum are as old as it": story(
        "Hold",
        apply("Pod", "first", gpus=4, run=40),
        apply("PyTorchJob", "elastic", 5, elastic=2, count=4, run=100),
        apply("Pod", "young", 10),
        apply("Pod", "younger", 1),
        do("wait", 60),
        gpus=4,
    ),
    # A gang has what its pods use, also what they used when it was no gang yet.
    "a Job of one pod grows into what is free": story(
        "Deny",
        apply("Job", "grows"),
        do("scale", 5, name="grows", to=4, how="apply"),
        do("wait", 5),
        gpus=4,
    ),
    "a PyTorchJob shrinks to one pod and grows while its pods end": story(
        "Deny",
        apply("PyTorchJob", "elastic", elastic=2, count=3, linger=20),
        do("scale", 3, name="elastic", to=1, how="apply"),
        do("scale", 3, name="elastic", to=3, how="scale"),
        do("wait", 5),
        gpus=3,
    ),
    # A group holds nothing once its pods are gone.
    "a PodGroup is deleted at once, and another one wants its GPUs": story(
        "Deny",
        apply("PodGroup", "one", count=4, gpus=2, run=30),
        do("delete", name="one"),
        apply("PodGroup", "two", 30, count=2, gpus=2, run=30),
        gpus=8,
    ),
    # Pods that outlive their gang count one by one, and so they are queued.
    "a LeaderWorkerSet that waits is deleted without its pods": story(
        "Hold",
        apply("Pod", "first", gpus=2),
        apply("LeaderWorkerSet", "gang", size=2),
        do("delete", 5, name="gang", how="orphan"),
        do("delete", 5, name="first"),
        gpus=3,
    ),
    # Groups of a LeaderWorkerSet are of use one by one, but each only as a whole.
    "a LeaderWorkerSet has room for one of its groups, Deny": story(
        "Deny", apply("LeaderWorkerSet", "gang", size=3, count=3), do("wait", 30), gpus=4
    ),
    "a LeaderWorkerSet has room for one of its groups, Hold": story(
        "Hold", apply("LeaderWorkerSet", "gang", size=3, count=3), do("wait", 30), gpus=4
    ),
    "a LeaderWorkerSet is deleted before its second group has workers": story(
        "Deny",
        apply("LeaderWorkerSet", "gang", size=3, count=2),
        do("delete", 1.8, name="gang", how="orphan"),
        apply("Job", "other", 20, count=4, run=30),
        gpus=6,
    ),
    "a PodGroup takes all, more than a minute after another one": story(
        "Deny",
        apply("PodGroup", "one", count=3, run=30),
        apply("PodGroup", "two", 70, count=3, run=30),
        gpus=3,
        slow=True,
    ),
    "a Job is scaled up as its first pods succeed": story(
        "Deny",
        apply("Job", "one", count=2, completions=4, run=10),
        do("scale", 11, name="one", to=3, how="apply"),
        apply("Job", "two", 7, count=2, run=10),
        gpus=4,
    ),
    # A quota is lowered below what a gang has while its pods are created.
    "a quota becomes too small for a gang that was booked": story(
        "Deny",
        apply("Job", "gang", count=4, gpus=2, run=30),
        do("onexceed", tenant="alpha", to="Hold"),
        do("quota", tenant="alpha", row=0, to=1),
        do("wait", 60),
        gpus=8,
    ),
    # A gang that shares a ResourceClaim uses GPUs as any other.
    "a gang that shares a claim waits for room": story(
        "Hold",
        apply("Pod", "first", gpus=4, run=60),
        apply("Job", "gang", 3, count=2, claim="shared", run=30),
        do("wait", 20),
        do("delete", 5, name="first"),
        do("wait", 30),
        gpus=4,
    ),
    "a JobSet of single pods that waits is deleted without its Jobs": story(
        "Hold",
        apply("Pod", "first", gpus=2),
        apply("JobSet", "gang", count=2, run=60),
        do("delete", 5, name="gang", how="orphan"),
        do("delete", 5, name="first"),
        gpus=3,
    ),
}
KEEP_TIER = frozenset(each for each in STORIES if each.endswith("in a full row, Demote"))
"""Stories in which all pods run at the tier of their workload, gpu-training."""
