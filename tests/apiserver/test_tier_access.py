"""`tierAccess: RBAC` on a real API server: a RoleBinding lets people name a tier in its namespace, and nowhere else.

Ada and Mallory have the role `edit` in one namespace. Ada alone may use gpu-serving there.
"""

import json
from collections.abc import Iterator
from functools import partial

import pytest
from typer.testing import CliRunner

from installation.examples import example_policy
from webhook.cli.main import app

from .asking import kubeconfig_of
from .conftest import new_namespace
from .installed import Installed, Tree, gpu_deployment, gpu_job, gpu_pod

pytestmark = pytest.mark.apiserver

SERVING, TIER = "gpu-serving", "gpu-tiers.dev/tier"
ROLE = f"gpu-tiers-use-{SERVING}"
REFUSED = "[tier-not-for-user]"


@pytest.fixture(scope="module")
def home(installed: Installed) -> Iterator[str]:
    """A namespace with a Deployment that is older than `tierAccess`, and the rights."""
    with new_namespace(installed.cluster) as name:
        installed.api.apply(gpu_deployment("older", 1), namespace=name)
        installed.eventually(partial(has_pods, installed, name, "older"), "a pod from before")
        for user in ("ada", "mallory", account(name)):
            bind(installed, name, f"{user.rpartition(':')[2]}-edits", "edit", user)
        installed.upgrade(policy={**example_policy(), "tierAccess": "RBAC"})
        bind(installed, name, "ada-serves", ROLE, "ada")
        hers = pod("ready")
        installed.eventually(lambda: not installed.create(hers, name, user="ada", dry_run=True).code, "her right")
        yield name
        installed.upgrade()


def account(namespace: str) -> str:
    """The service account that Mallory may act as."""
    return f"system:serviceaccount:{namespace}:bot"


def bind(installed: Installed, namespace: str, name: str, role: str, user: str) -> None:
    create = ("create", "rolebinding", name, f"--clusterrole={role}", f"--user={user}", f"--namespace={namespace}")
    installed.cluster.kubectl(*create)


def pod(name: str, **metadata: object) -> Tree:
    made = gpu_pod(name, tier=SERVING)
    return made | {"metadata": made["metadata"] | metadata}


def has_pods(installed: Installed, namespace: str, app_label: str, count: int = 1) -> bool:
    found = installed.api.get("pods", namespace, labelSelector=f"app={app_label}")["items"]
    return sum(each["spec"]["priorityClassName"] == SERVING for each in found) >= count


def owned_by(installed: Installed, namespace: str, what: str, kind: str) -> Tree:
    """Metadata that name an object as controller."""
    tree = installed.get(what, namespace)
    identity = {key: tree["metadata"][key] for key in ("name", "uid")}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"ownerReferences": [{"apiVersion": version, "kind": kind, "controller": True, **identity}]}


def labelled_cronjob(name: str, schedule: str) -> Tree:
    template = gpu_job("", 1)["spec"]["template"] | {"metadata": {"labels": {"app": name}}}
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": template}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": named(name), "spec": spec}


def named(name: str) -> Tree:
    return {"name": name, "labels": {TIER: SERVING}}


def test_a_binding_counts_in_its_namespace_alone(installed: Installed, home: str, namespace: str) -> None:
    asked = ("auth", "can-i", "use", f"priorityclasses/{SERVING}", "--as=ada")
    assert installed.cluster.kubectl(*asked, f"--namespace={home}").stdout.strip() == "yes"
    assert installed.cluster.kubectl(*asked, f"--namespace={namespace}", check=False).stdout.strip() == "no"
    bind(installed, namespace, "ada-edits", "edit", "ada")
    assert not installed.create(pod("served"), home, user="ada", dry_run=True).code
    refusal = installed.create(pod("served"), namespace, user="ada", dry_run=True).stderr.rstrip()
    assert f"user ada may not use {SERVING}: that takes the verb use on PriorityClass {SERVING} (tierAccess" in refusal
    assert refusal.endswith(f"ask your platform team for the ClusterRole whose name ends with -use-{SERVING} {REFUSED}")


def test_who_may_not_use_a_tier_gets_it_in_no_way(installed: Installed, home: str) -> None:
    for made in (gpu_deployment("his", 1), gpu_job("his", 1)):
        assert not installed.create(made | {"metadata": {"name": "his"}}, home, user="mallory").code
    (older,) = installed.api.get("replicasets", home, labelSelector="app=older")["items"]
    by_hers = owned_by(installed, home, f"replicaset/{older['metadata']['name']}", "ReplicaSet")
    by_his, by_deployment = (
        owned_by(installed, home, what, kind) for what, kind in (("job/his", "Job"), ("deployment/older", "Deployment"))
    )
    hidden = gpu_deployment("hidden", 1)
    ways = {
        "a label": (pod("x"), "mallory"),
        "a class": (gpu_pod("x", priorityClassName=SERVING), "mallory"),
        "a Deployment": (gpu_deployment("x", 1), "mallory"),
        "a CronJob": (labelled_cronjob("x", "0 0 1 1 *"), "mallory"),
        "a pod of somebody's ReplicaSet": (pod("x", **by_hers), "mallory"),
        "a Deployment of somebody's": (hidden | {"metadata": named("x") | by_deployment}, "mallory"),
        "a pod by a service account": (pod("x", **by_his), account(home)),
        "a Deployment by a service account": (hidden | {"metadata": named("x") | by_his}, account(home)),
    }
    for way, (made, user) in ways.items():
        answer = installed.create(made, home, user=user, dry_run=True)
        assert answer.stderr.rstrip().endswith(REFUSED), f"{way}: {answer.stderr}"
    changes = {
        "a label of a Deployment": ("deployment/his", {"labels": {TIER: SERVING}}),
        "a label of a Job": ("job/his", {"labels": {TIER: SERVING}}),
        "an owner that names the tier": ("job/his", by_deployment),
    }
    for way, (what, metadata) in changes.items():
        patch = ("patch", what, "--patch", json.dumps({"metadata": metadata}), f"--namespace={home}", "--as=mallory")
        answer = installed.cluster.kubectl(*patch, check=False)
        assert answer.stderr.rstrip().endswith(REFUSED), f"{way}: {answer.stderr}"


def test_the_pods_of_a_workload_come_whoever_changes_it_later(installed: Installed, home: str) -> None:
    """Those of Ada's Deployment, Job and CronJob do, and of the older Deployment that Mallory scales."""
    job = gpu_job("train", 1)
    job["metadata"] = named("train")
    job["spec"]["template"]["metadata"] = {"labels": {"app": "train"}}
    for made in (gpu_deployment("chat", 1), job, labelled_cronjob("nightly", "* * * * *")):
        answer = installed.create(made, home, user="ada")
        assert not answer.code, answer.stderr
    for each in ("chat", "train", "nightly"):
        installed.eventually(partial(has_pods, installed, home, each), f"a pod of {each}")
    change = (f"--namespace={home}", "--as=mallory")
    installed.cluster.kubectl("scale", "deployment/older", "--replicas=2", *change)
    installed.cluster.kubectl("set", "image", "deployment/chat", "main=registry.example/work:2", *change)
    for each in ("older", "chat"):
        installed.eventually(partial(has_pods, installed, home, each, 2), f"another pod of {each}")
    assert REFUSED not in installed.messages(home, "reason=FailedCreate")


def test_explain_says_which_tiers_its_user_may_name(installed: Installed, home: str) -> None:
    installed.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "eve", "namespace": home}})
    for role in ("view", ROLE):
        installed.bind(f"eve-{role}", role, "eve", home)
    installed.bind("eve-reads", "gpu-tiers-reader", "eve", home, everywhere=True)
    config = kubeconfig_of(installed, "eve", home)
    said = CliRunner().invoke(app, ["explain", "deploy/older", f"--namespace={home}", f"--kubeconfig={config}"]).output
    installed.api.delete("clusterrolebinding/eve-reads")
    assert f"tierAccess: RBAC. Tiers that you may name here: {SERVING}." in said
    assert f"kubectl auth can-i use priorityclasses/TIER -n {home} --as USER" in said


def test_a_right_that_is_taken_away_is_gone_in_seconds(installed: Installed, home: str) -> None:
    installed.cluster.kubectl("delete", "rolebinding", "ada-serves", f"--namespace={home}")
    late = pod("late")
    installed.eventually(lambda: bool(installed.create(late, home, user="ada", dry_run=True).code), "the end of it")
