"""The Job that opens the gates of queued pods at the end of an uninstall, as it is rendered."""

from pathlib import Path

import pytest
import yaml

from .conftest import Render
from .helm import CHART, Chart, Manifest, helm
from .test_objects import FLAVORS
from .test_values import container, pod_spec

NAME = "gpu-tiers-open-gates"
HELM_SECONDS = 300
"""helm waits so long for a hook, unless it is told otherwise."""


def hooks(chart: Chart) -> list[Manifest]:
    return [each for each in chart if each["metadata"].get("annotations", {}).get("helm.sh/hook") == "post-delete"]


def weight(tree: Manifest) -> int:
    return int(tree["metadata"]["annotations"]["helm.sh/hook-weight"])


def bounding(found: list[Manifest]) -> list[Manifest]:
    """The policy that bounds its account, and its binding."""
    return [each for each in found if each["kind"].startswith("ValidatingAdmissionPolicy")]


def test_its_account_is_bound_when_all_else_is_gone(render: Render) -> None:
    """By the same as the webhook's, whatever it may patch."""
    chart = render(policy={"preemption": {"dra": "On"}})
    policy, binding = bounding(hooks(chart))
    own = chart.one("ValidatingAdmissionPolicy", "gpu-tiers-own-account")
    assert policy["metadata"]["name"] == binding["spec"]["policyName"] == NAME
    assert binding["spec"]["validationActions"] == ["Deny"]
    (who,) = policy["spec"].pop("matchConditions")
    assert who["expression"] == f'request.userInfo.username in ["system:serviceaccount:gpu-tiers:{NAME}"]'
    del own["spec"]["matchConditions"]
    assert policy["spec"] == own["spec"]


def test_it_comes_after_its_rights_and_goes_with_them(render: Render) -> None:
    found = hooks(render())
    (job,) = (each for each in found if each["kind"] == "Job")
    rights, bounds = [each for each in found if "Role" in each["kind"] or "Service" in each["kind"]], bounding(found)
    assert {each["kind"] for each in rights} == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
    assert [weight(each) for each in (*bounds, *rights, job)] == [-2, -2, -1, -1, -1, 0]
    for each in found:
        policies = each["metadata"]["annotations"]["helm.sh/hook-delete-policy"].split(",")
        assert {"before-hook-creation", "hook-succeeded"} <= set(policies)
        assert ("hook-failed" in policies) == (each is not job), (
            "the log of a Job that failed is kept, its rights are not"
        )


def test_it_may_list_and_patch_pods_and_nothing_else(render: Render) -> None:
    chart = render()
    assert chart.one("ClusterRole", NAME)["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]}
    ]
    binding = chart.one("ClusterRoleBinding", NAME)
    assert binding["roleRef"]["name"] == NAME
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "gpu-tiers"}]
    assert chart.one("ServiceAccount", NAME)["automountServiceAccountToken"] is False
    assert pod_spec(chart.one("Job"))["serviceAccountName"] == NAME


def test_it_ends_reservations_of_nodes_where_there_may_be_some(render: Render) -> None:
    chart = render(policy={"preemption": {"dra": "On"}})
    rules = chart.one("ClusterRole", NAME)["rules"]
    assert {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]} in rules
    assert "--nodes" in container(chart.one("Job"))["args"]
    assert "--nodes" not in container(render().one("Job"))["args"]


def test_gates_open_in_an_outage_only_after_enforcement_ended(render: Render) -> None:
    """The webhook is asked about the end of a pod's last gate, so break-glass ends enforcement first."""
    (entry,) = (
        each
        for each in render(mode="Enforce", policy=FLAVORS).one("ValidatingWebhookConfiguration")["webhooks"]
        if each["name"] == "pods-update.validate.gpu-tiers.dev"
    )
    asked = str(entry["matchConditions"])
    assert (entry["failurePolicy"], "schedulingGates" in asked) == ("Fail", True)
    page = (CHART.parents[1] / "docs" / "break-glass.md").read_text()
    _, section = page.split("## Pods that wait for quota\n")
    before, _ = section.split("gpu-tiers open-gates")
    assert "(#end-enforcement)" in before
    assert f'"failurePolicy":"Ignore","name":"{entry["name"]}"' in page, "the command there names this entry"


def test_beside_an_installation_its_account_is_bound_as_the_webhooks(render: Render) -> None:
    """The hooks may be applied next to a running installation."""
    chart = render()
    guard, own = (
        chart.one("ValidatingAdmissionPolicy", f"gpu-tiers-{name}")["spec"] for name in ("hold", "own-account")
    )
    account = f"system:serviceaccount:gpu-tiers:{NAME}"
    assert account not in guard["matchConditions"][1]["expression"], "it opens nothing"
    webhook = account.removesuffix("-open-gates")
    assert own["matchConditions"][0]["expression"] == f'request.userInfo.username in ["{webhook}","{account}"]'


def test_it_ends_before_helm_gives_up_and_its_log_stays_for_a_while(render: Render) -> None:
    spec = render().one("Job")["spec"]
    assert spec["activeDeadlineSeconds"] < HELM_SECONDS
    assert spec["template"]["spec"]["restartPolicy"] == "Never", "with OnFailure no pod is left to read the log of"
    assert spec["ttlSecondsAfterFinished"] >= HELM_SECONDS
    assert container(render().one("Job"))["args"] == ["open-gates", "--yes", "--wait-seconds=30"]


def test_it_asks_for_what_the_webhook_asks_for(render: Render) -> None:
    resources = {"limits": {"memory": "2Gi"}}
    chart = render(resources=resources, tolerations=[{"key": "gpu"}], commonLabels={"example.com/team": "platform"})
    job = chart.one("Job")
    assert {"cpu", "memory"} == set(container(job)["resources"]["requests"])
    assert container(job)["resources"] == container(chart.one("Deployment"))["resources"]
    assert pod_spec(job)["tolerations"] == [{"key": "gpu"}]
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels["example.com/team"] == "platform"
    assert chart.one("Service")["spec"]["selector"].items() - labels.items(), "no review is sent to it"


@pytest.mark.parametrize(
    "values",
    [
        {"hold": {"openAtUninstall": False}},
        {"rbac": {"create": False}},
        {"webhook": {"url": "https://gpu-tiers.example.com", "user": "oidc:gpu-tiers"}},
    ],
    ids=["off", "without roles", "outside the cluster"],
)
def test_nothing_of_it_is_there_where_it_is_not_wanted_or_may_nothing(render: Render, values: Manifest) -> None:
    chart = render(**values)
    assert not hooks(chart)
    assert NAME not in yaml.safe_dump_all(chart)


def test_a_release_of_another_name_has_one_of_its_own(render: Render, home: Path) -> None:
    named = render(fullnameOverride="a" * 50)
    assert {each["metadata"]["name"] for each in hooks(named)} == {f"{'a' * 50}-open-gates"}
    other = helm("template", "other", str(CHART), "--namespace=elsewhere", home=home)
    found = hooks(Chart(each for each in yaml.safe_load_all(other.stdout) if each))
    assert {each["metadata"]["name"] for each in found} == {"other-gpu-tiers-open-gates"}
    namespaces = {
        each["metadata"].get("namespace") or each["subjects"][0]["namespace"]
        for each in found
        if "Policy" not in each["kind"] and each["kind"] != "ClusterRole"
    }
    assert namespaces == {"elsewhere"}
