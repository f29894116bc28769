"""The rendered objects: what every install must hold to, whatever its values."""

import json
import re
from collections.abc import Iterable

import pytest

from webhook.cluster.webhook_configurations import ALWAYS
from webhook.page.readers import RIGHT
from webhook.policy.assignment.assigned_by import ASSIGNED_BY
from webhook.policy.quota.demand import ANNOTATIONS
from webhook.policy.workloads.kind_table import BUILT_IN
from webhook.policy.workloads.pod_groups import LOOKED_UP
from webhook.server.endpoint import Limits
from webhook.server.listener import Drain

from .conftest import Render
from .helm import Chart, Manifest
from .test_values import container, pod_spec, pod_specs

FIRST_CALL, SECOND_CALL = "pods.mutate.gpu-tiers.dev", "pods-again.mutate.gpu-tiers.dev"
CONFIGURATIONS = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]


@pytest.fixture(scope="module")
def chart(render: Render) -> Chart:
    return render(mode="Enforce")


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_the_configurations_are_called_last(chart: Chart, kind: str) -> None:
    assert chart.one(kind)["metadata"]["name"] == "zz-gpu-tiers"


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_each_entry_is_bounded_and_honest_about_dry_run(chart: Chart, kind: str) -> None:
    for name, entry in chart.entries(kind).items():
        assert entry["sideEffects"] == "NoneOnDryRun", name
        assert entry["matchPolicy"] == "Equivalent", name
        assert entry["timeoutSeconds"] <= 5, name
        assert entry["admissionReviewVersions"] == ["v1"], name
        assert list(entry["clientConfig"]) == ["service"], name


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_each_entry_is_for_one_shape_of_object_in_all_its_versions(chart: Chart, kind: str) -> None:
    for name, entry in chart.entries(kind).items():
        (rule,) = entry["rules"]
        assert rule["apiVersions"] == ["*"], name
        assert len(rule["apiGroups"]) == 1, name
        subresources = {each.partition("/")[2] for each in rule["resources"]}
        assert subresources == ({"scale"} if ".scale." in name else {""}), f"{name} would see another subresource"


def test_mutation_happens_on_create_only_and_again_after_others(chart: Chart) -> None:
    entries = chart.entries("MutatingWebhookConfiguration")
    assert list(entries) == [
        FIRST_CALL,
        SECOND_CALL,
        "podgroups.mutate.gpu-tiers.dev",
        "scheduling-workloads.mutate.gpu-tiers.dev",
        "batch.workloads.mutate.gpu-tiers.dev",
        "batch.volcano.sh.workloads.mutate.gpu-tiers.dev",
    ]
    for name, entry in entries.items():
        assert entry["reinvocationPolicy"] == ("Never" if name == SECOND_CALL else "IfNeeded")
        assert entry["rules"][0]["operations"] == ["CREATE"]
        assert entry["clientConfig"]["service"] == {"name": "gpu-tiers", "namespace": "gpu-tiers", "port": 443}


def test_a_pod_is_sent_a_second_time_only_where_pods_are_patched(render: Render, chart: Chart) -> None:
    entries = chart.entries("MutatingWebhookConfiguration")
    (first,), (second,) = (entries[name]["matchConditions"] for name in (FIRST_CALL, SECOND_CALL))
    assert f"'{ASSIGNED_BY}' in object.metadata.annotations) && {first['expression']}" in second["expression"]
    assert SECOND_CALL in render(mode="Warn").entries("MutatingWebhookConfiguration")
    assert SECOND_CALL not in render(mode="Audit").entries("MutatingWebhookConfiguration")


def test_the_validating_entries_are_named_for_what_they_see(chart: Chart) -> None:
    groups = sorted({row.group for row in BUILT_IN.rows})
    assert list(chart.entries()) == [
        "pods.validate.gpu-tiers.dev",
        "pods-with-devices.validate.gpu-tiers.dev",
        "pods-update.validate.gpu-tiers.dev",
        "resourceclaims.validate.gpu-tiers.dev",
        "podgroups.validate.gpu-tiers.dev",
        "volcano-podgroups.validate.gpu-tiers.dev",
        "kai-podgroups.validate.gpu-tiers.dev",
        "scheduling-workloads.validate.gpu-tiers.dev",
        *(f"{group or 'core'}.workloads.gpu-tiers.dev" for group in groups),
        *(f"{group}.scale.gpu-tiers.dev" for group in sorted({row.group for row in BUILT_IN.rows if row.scale})),
        "tenantquotas.validate.gpu-tiers.dev",
        "namespaces.validate.gpu-tiers.dev",
    ]


def test_a_pod_without_gpus_never_reaches_the_webhook(chart: Chart) -> None:
    for kind, name in zip(CONFIGURATIONS, ("pods.mutate.gpu-tiers.dev", "pods.validate.gpu-tiers.dev"), strict=True):
        (gpus,) = chart.entries(kind)[name]["matchConditions"]
        assert "n.contains('/')" in gpus["expression"], "no resource of Kubernetes' own has a slash"
        assert '"devices.kubevirt.io/kvm"' in gpus["expression"], "what the policy says is no GPU"


@pytest.mark.parametrize(
    ("mode", "actions"),
    [
        ("Audit", {"": "Audit", "-warn": "Warn", "-enforce": "Deny"}),
        ("Warn", {"": "Warn", "-enforce": "Deny"}),
        ("Enforce", {"": "Deny"}),
    ],
)
def test_the_ceilings_hold_as_the_mode_says(render: Render, mode: str, actions: dict[str, str]) -> None:
    chart = render(mode=mode)
    names = {each["metadata"]["name"]: each["spec"] for each in chart.of("ValidatingAdmissionPolicyBinding")}
    bindings = {name: spec for name, spec in names.items() if name.startswith("gpu-tiers-ceilings")}
    found = {name.removeprefix("gpu-tiers-ceilings"): spec["validationActions"] for name, spec in bindings.items()}
    assert found == {name: [action] for name, action in actions.items()}
    main, *stricter = (
        spec.get("matchResources", {}).get("namespaceSelector", {}).get("matchExpressions", [{}])[0].get("values", [])
        for spec in bindings.values()
    )
    assert main == [value for values in stricter for value in values], "each namespace has one binding"
    policy = chart.one("ValidatingAdmissionPolicy", "gpu-tiers-ceilings")["spec"]
    assert policy["failurePolicy"] == chart.entries()["pods.validate.gpu-tiers.dev"]["failurePolicy"]
    exempt = chart.entries()["pods.validate.gpu-tiers.dev"]["namespaceSelector"]
    assert policy["matchConstraints"]["namespaceSelector"] == exempt


def test_the_secret_is_empty_so_that_an_upgrade_leaves_it_alone(chart: Chart) -> None:
    secret = chart.one("Secret", "gpu-tiers-tls")
    assert not {"data", "stringData"} & set(secret)


@pytest.mark.parametrize("kind", ["PriorityClass", "CustomResourceDefinition"])
def test_what_outlives_the_release_stays(chart: Chart, kind: str) -> None:
    for each in chart.of(kind):
        assert each["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_no_class_is_the_default_of_the_cluster(chart: Chart) -> None:
    assert {each["globalDefault"] for each in chart.of("PriorityClass")} == {False}


FLAVORS = {"resourceFlavors": [{"name": "h100", "nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100"}}]}


def test_nodes_are_read_always_and_lifted_gates_asked_about_for_flavors(render: Render) -> None:
    """The capacity of device plugins shows where a tier evicts, with flavors and the page or without."""
    for policy in ({}, FLAVORS):
        chart, has_flavors = render(mode="Enforce", policy=policy, page={"enabled": False}), bool(policy)
        assert [rule["verbs"] for rule in rules(chart) if "nodes" in rule["resources"]] == [["list", "watch"]]
        *_, changed = chart.entries()["pods-update.validate.gpu-tiers.dev"]["matchConditions"]
        assert ("schedulingGates" in changed["expression"]) == has_flavors


@pytest.mark.parametrize(
    "values", [{}, {"webhook": {"url": "https://gpu-tiers.example.com"}, "rbac": {"create": False}}]
)
def test_the_policies_that_check_looks_for_are_in_each_release(render: Render, values: Manifest) -> None:
    names = [each["metadata"]["name"] for each in render(**values).of("ValidatingAdmissionPolicy")]
    assert all(any(name.endswith(end) for name in names) for end in ALWAYS)


def rules(chart: Chart, name: str = "gpu-tiers") -> list[Manifest]:
    """The webhook's own, unless another role is named."""
    roles = [each for kind in ("ClusterRole", "Role") for each in chart.of(kind)]
    return [rule for each in roles if each["metadata"]["name"] == name for rule in each["rules"]]


READERS = ("gpu-tiers-view", "gpu-tiers-reader", "gpu-tiers-cluster-reader")


def test_people_may_read_what_the_commands_read_and_no_secret(chart: Chart) -> None:
    for name in READERS:
        for rule in rules(chart, name):
            assert set(rule["verbs"]) <= {"get", "list", "watch"}
            assert "*" not in rule["apiGroups"] + rule["resources"]
            assert "secrets" not in rule["resources"]
            assert "configmaps" not in rule["resources"] or rule["resourceNames"] in (
                ["gpu-tiers", "gpu-tiers-active"],
                ["cluster-autoscaler-status"],
            )
    known = {(row.group, row.plural) for row in BUILT_IN.rows}
    assert known <= pairs(rules(chart, "gpu-tiers-cluster-reader"))
    counted = {("resource.k8s.io", each) for each in ("deviceclasses", "resourceslices")}
    assert counted <= pairs(rules(chart, "gpu-tiers-reader"))


def test_only_what_adds_to_view_reaches_anybody_by_itself(render: Render, chart: Chart) -> None:
    labels = {name: chart.one("ClusterRole", name)["metadata"]["labels"] for name in READERS}
    to_view = "rbac.authorization.k8s.io/aggregate-to-view"
    assert [name for name in READERS if to_view in labels[name]] == ["gpu-tiers-view"]
    bound = {each["roleRef"]["name"] for kind in ("ClusterRoleBinding", "RoleBinding") for each in chart.of(kind)}
    assert bound.isdisjoint(READERS)
    named = render(rbac={"reader": {"groups": ["researchers", "oidc:ml"]}}).one("ClusterRoleBinding", READERS[1])
    assert [named["roleRef"]["name"], *(each["name"] for each in named["subjects"])] == [
        "gpu-tiers-reader",
        "researchers",
        "oidc:ml",
    ]
    outside = render(webhook={"url": "https://gpu-tiers.example.com"})
    assert {each["metadata"]["name"] for each in outside.of("ClusterRole")} == set(READERS)
    none = render(rbac={"reader": {"create": False}, "aggregateToView": False})
    assert [each["metadata"]["name"] for each in none.of("ClusterRole")] == ["gpu-tiers", "gpu-tiers-open-gates"]


def test_secrets_are_never_listed_and_only_one_is_read(chart: Chart) -> None:
    (rule,) = [rule for rule in rules(chart) if "secrets" in rule["resources"]]
    assert rule["resourceNames"] == ["gpu-tiers-tls"]
    assert rule["verbs"] == ["get", "watch", "patch"]
    assert rule in chart.one("Role")["rules"], "not cluster-wide"


def test_writes_are_confined_by_name_or_to_a_status_but_for_events_leases_and_gates(chart: Chart) -> None:
    writers = [rule for rule in rules(chart) if set(rule["verbs"]) - {"get", "list", "watch"}]
    events = {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]}
    gates = {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}
    right = {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}
    free = (events, leases, gates, right)
    assert [writers.count(each) for each in free] == [1, 1, 1, 1]
    for rule in (each for each in writers if each not in free):
        assert "resourceNames" in rule or rule["resources"] == ["tenantquotas/status"]
        assert set(rule["verbs"]) <= {"get", "watch", "patch", "update"}


@pytest.mark.parametrize("mode", ["Audit", "Warn", "Enforce"])
def test_gates_are_opened_by_the_webhook_alone_in_every_mode_and_namespace(render: Render, mode: str) -> None:
    chart = render(mode=mode)
    policy = chart.one("ValidatingAdmissionPolicy", "gpu-tiers-hold")["spec"]
    assert policy["failurePolicy"] == "Fail"
    assert "namespaceSelector" not in policy["matchConstraints"]
    binding = chart.one("ValidatingAdmissionPolicyBinding", "gpu-tiers-hold")["spec"]
    assert binding == {"policyName": "gpu-tiers-hold", "validationActions": ["Deny"]}


@pytest.mark.parametrize(
    ("values", "user"),
    [
        ({}, "system:serviceaccount:gpu-tiers:gpu-tiers"),
        ({"serviceAccount": {"name": "mine"}}, "system:serviceaccount:gpu-tiers:mine"),
        ({"webhook": {"url": "https://gpu-tiers.example.com", "user": "oidc:gpu-tiers"}}, "oidc:gpu-tiers"),
    ],
)
def test_the_webhook_that_opens_gates_is_known_by_its_user(render: Render, values: Manifest, user: str) -> None:
    policy = render(**values).one("ValidatingAdmissionPolicy", "gpu-tiers-hold")["spec"]
    assert policy["matchConditions"][1]["expression"] == f"request.userInfo.username != '{user}'"


def test_one_lease_of_the_release_is_read_and_renewed(chart: Chart) -> None:
    leased, made = (rule for rule in rules(chart) if "leases" in rule["resources"])
    assert (leased["resourceNames"], leased["verbs"], made["verbs"]) == (["gpu-tiers"], ["get", "update"], ["create"])
    assert all(rule in chart.one("Role")["rules"] for rule in (leased, made)), "not cluster-wide"
    assert "spec" not in chart.one("Lease", "gpu-tiers"), "so that an upgrade leaves it alone"
    assert "--lease=gpu-tiers" in container(chart.one("Deployment"))["args"]


def test_accounts_are_replaced_whole(chart: Chart) -> None:
    (written,) = [rule for rule in rules(chart) if "tenantquotas/status" in rule["resources"]]
    assert written["verbs"] == ["update"]


def test_no_rule_has_a_star(chart: Chart) -> None:
    for rule in rules(chart):
        assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]


def test_every_kind_of_the_webhooks_table_is_validated_and_readable_as_an_owner(chart: Chart) -> None:
    known = {(row.group, row.plural) for row in BUILT_IN.rows} - {("", "pods")}
    entries = [entry for name, entry in chart.entries().items() if ".workloads." in name]
    assert pairs(rule for entry in entries for rule in entry["rules"]) == known
    runtimes = {
        (row.runtime.group, plural) for row in BUILT_IN.rows if row.runtime for plural in row.runtime.plurals.values()
    }
    templates = {*(("scheduling.k8s.io", each) for each in ("workloads", "compositepodgroups"))}
    templates |= {(source.kind.group, "podgroups") for source in LOOKED_UP}
    own = {("", "configmaps")}
    assert pairs(rule for rule in rules(chart) if rule["verbs"] == ["get"]) == known | runtimes | templates | own


def test_a_scale_is_asked_about_where_the_webhooks_table_knows_its_field(chart: Chart) -> None:
    entries = [entry for name, entry in chart.entries().items() if ".scale." in name]
    known = {(row.group, f"{row.plural}/scale") for row in BUILT_IN.rows if row.scale}
    assert pairs(rule for entry in entries for rule in entry["rules"]) == known
    for entry in entries:
        assert entry["rules"][0]["operations"] == ["UPDATE"]
        assert entry["failurePolicy"] == "Ignore", "everything can be scaled while the webhook is down"


def test_members_of_a_gang_are_known_by_the_labels_of_the_webhooks_table(chart: Chart) -> None:
    condition = chart.entries()["pods.validate.gpu-tiers.dev"]["matchConditions"][-1]["expression"]
    (labels,) = re.findall(r"exists\(l, l in (\[[^\]]*\])", condition)
    assert set(json.loads(labels)) == BUILT_IN.gang_labels | {"gpu-tiers.dev/tier"}


def test_templates_are_asked_about_by_the_annotations_that_are_warned_about(chart: Chart) -> None:
    for group in ("core", "apps", "batch"):
        condition = chart.entries()[f"{group}.workloads.gpu-tiers.dev"]["matchConditions"][-1]["expression"]
        (annotations,) = re.findall(r"(\[[^\]]*\])\.exists\(a, a in ", condition)
        assert annotations == str(list(ANNOTATIONS))


def pairs(rules: Iterable[Manifest]) -> set[tuple[str, str]]:
    return {(group, kind) for rule in rules for group in rule["apiGroups"] for kind in rule["resources"]}


def test_the_pod_meets_the_restricted_pod_security_standard(chart: Chart) -> None:
    for each in pod_specs(chart):
        assert each["securityContext"]["runAsNonRoot"] is True
        assert each["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (only,) = each["containers"]
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_the_server_gets_the_names_of_what_the_chart_made(chart: Chart) -> None:
    options = dict(each.removeprefix("--").split("=") for each in container(chart.one("Deployment"))["args"][1:])
    assert options["service"] == chart.one("Service")["metadata"]["name"]
    assert chart.one("Secret", options["secret"])
    assert options["configuration"] == chart.one(CONFIGURATIONS[0])["metadata"]["name"]
    assert options["certificates"] == "self-managed"


def test_a_rollout_never_leaves_fewer_replicas_than_were_asked_for(chart: Chart) -> None:
    spec = chart.one("Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]["rollingUpdate"]) == (2, {"maxSurge": 1, "maxUnavailable": 0})


def test_each_replica_has_a_name_of_its_own_and_a_node_where_there_are_several(chart: Chart) -> None:
    deployment = chart.one("Deployment")
    names = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container(deployment)["env"]}
    assert names["POD_NAME"] == "metadata.name"
    (spread,) = pod_spec(deployment)["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")
    assert spread["labelSelector"] == {"matchLabels": deployment["spec"]["selector"]["matchLabels"]}


def test_it_may_end_in_its_own_time(chart: Chart) -> None:
    assert Drain().seconds + Limits().stop_seconds < pod_spec(chart.one("Deployment"))["terminationGracePeriodSeconds"]


def test_only_the_webhook_and_the_probes_are_reachable_and_replicas_by_replicas(chart: Chart) -> None:
    spec = chart.one("NetworkPolicy")["spec"]
    *for_all, handed = spec["ingress"]
    assert [port["port"] for rule in for_all for port in rule["ports"]] == [9443, 8080]
    ours = {"podSelector": {"matchLabels": chart.one("Deployment")["spec"]["selector"]["matchLabels"]}}
    ports = [{"port": 9445, "protocol": "TCP"}]
    assert handed == {"ports": ports, "from": [ours]}
    assert {"ports": ports, "to": [ours]} in spec["egress"]
    assert "--hand-over-port=9445" in container(chart.one("Deployment"))["args"]
    names = {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container(chart.one("Deployment"))["env"]
    }
    assert names["POD_IP"] == "status.podIP"


def test_the_webhook_calls_dns_and_where_api_servers_listen_and_nobody_else(render: Render, chart: Chart) -> None:
    """Not the cloud's metadata service, a kubelet or etcd."""
    spec = chart.one("NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert {port["port"] for rule in spec["egress"] for port in rule["ports"]} == {
        *(53, 5353),
        *(443, 6443, 8443, 16443),
        9445,
    }
    api_server = [{"ipBlock": {"cidr": "10.0.0.0/28"}}]
    dns, _, narrow = render(networkPolicy={"egressTo": api_server}).one("NetworkPolicy")["spec"]["egress"]
    assert (narrow["to"], "to" in dns) == (api_server, False)
    open_ = render(networkPolicy={"egressPorts": []}).one("NetworkPolicy")["spec"]
    assert (open_["policyTypes"], "egress" in open_) == (["Ingress"], False)


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://prometheus.monitoring.svc:9090/prometheus", 9090),
        ("http://prometheus.example.com", 80),
        ("https://thanos-querier.openshift-monitoring.svc:9091", 9091),
        ("https://[fd00::9]:9443", 9443),
    ],
)
def test_the_page_asks_a_prometheus_that_is_named_and_may_reach_it(
    render: Render, chart: Chart, url: str, port: int
) -> None:
    assert not [each for each in container(chart.one("Deployment"))["args"] if "prometheus" in each]
    asking = render(page={"prometheus": {"url": url, "labels": {"cluster": "eu-1"}}})
    right = [each for each in container(asking.one("Deployment"))["args"] if "prometheus" in each]
    assert right == [f"--prometheus-url={url}", "--prometheus-label=cluster=eu-1"]
    *_, calls = asking.one("NetworkPolicy")["spec"]["egress"]
    assert port in [each["port"] for each in calls["ports"]]
    without = render(page={"enabled": False, "prometheus": {"url": url}})
    assert not [each for each in container(without.one("Deployment"))["args"] if "prometheus" in each]


def test_the_page_is_reached_and_the_api_server_asked_for_its_readers_only_on_request(
    render: Render, chart: Chart
) -> None:
    asking = {"tokenreviews", "subjectaccessreviews"}
    assert not [each for each in rules(chart) if asking & set(each["resources"])]
    assert [each["name"] for each in chart.one("Service")["spec"]["ports"]] == ["webhook", "metrics"]
    page = {"authentication": {"enabled": True, "audiences": ["gpu-tiers"]}}
    opened = render(page=page, networkPolicy={"pageFrom": [{"podSelector": {}}]})
    own = opened.one("ClusterRole", "gpu-tiers")["rules"]
    found = [(each["apiGroups"], each["resources"], each["verbs"]) for each in own if asking & set(each["resources"])]
    assert found == [
        (["authentication.k8s.io"], ["tokenreviews"], ["create"]),
        (["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
    ]
    reader = opened.one("ClusterRole", "gpu-tiers-page-reader")["rules"]
    assert reader == [{"nonResourceURLs": [RIGHT], "verbs": ["get"]}]
    port = opened.one("Service")["spec"]["ports"][-1]
    assert (port["name"], port["port"], port["targetPort"]) == ("page", 8091, "page")
    arguments = container(opened.one("Deployment"))["args"]
    assert {"--page-port=8090", "--page-tls-port=8091", "--page-audience=gpu-tiers"} <= set(arguments)
    rule = opened.one("NetworkPolicy")["spec"]["ingress"][-1]
    assert rule == {"ports": [{"port": 8091, "protocol": "TCP"}], "from": [{"podSelector": {}}]}


def test_who_names_a_tier_needs_its_role_only_on_request(render: Render, chart: Chart) -> None:
    """Each workload is reviewed then, also what a controller has made, and each change of what names its tier."""
    asking = (["authorization.k8s.io"], ["subjectaccessreviews"], ["create"])
    assert not [each for each in chart.of("ClusterRole") if "-use-" in each["metadata"]["name"]]
    rights = render(policy={"tierAccess": "RBAC"})
    own = [(each["apiGroups"], each["resources"], each["verbs"]) for each in rules(rights) if "apiGroups" in each]
    assert own.count(asking) == 1
    roles = {each["metadata"]["name"]: each["rules"] for each in rights.of("ClusterRole")}
    tiers = ("gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive")
    assert {name: found for name, found in roles.items() if "-use-" in name} == {
        f"gpu-tiers-use-{tier}": [
            {
                "apiGroups": ["scheduling.k8s.io"],
                "resources": ["priorityclasses"],
                "resourceNames": [tier],
                "verbs": ["use"],
            }
        ]
        for tier in tiers
    }
    for name, entry in rights.entries().items():
        if name.endswith("workloads.gpu-tiers.dev"):
            conditions = {each["name"]: each["expression"] for each in entry["matchConditions"]}
            assert not [each for each in conditions if each.startswith("nobody-controls-it")]
            assert "ownerReferences" in conditions["somebody-changed-it"]
    assert "ownerReferences.orValue([]) !=" not in str(chart.entries()["apps.workloads.gpu-tiers.dev"])


def test_trainings_report_to_every_replica_only_on_request(render: Render, chart: Chart) -> None:
    assert "reports" not in str(container(chart.one("Deployment")))
    assert not [each for each in chart if each["metadata"]["name"] == "gpu-tiers-reports"]
    heard = render(reports={"enabled": True}, networkPolicy={"reportsFrom": [{"podSelector": {}}]})
    assert {"--reports-port=9444", "--reports-service=gpu-tiers-reports"} <= set(
        container(heard.one("Deployment"))["args"]
    )
    service = heard.one("Service", "gpu-tiers-reports")["spec"]
    assert service["clusterIP"] == "None"
    assert [(each["port"], each["targetPort"]) for each in service["ports"]] == [(9444, "reports")]
    rule = heard.one("NetworkPolicy")["spec"]["ingress"][-1]
    assert rule == {"ports": [{"port": 9444, "protocol": "TCP"}], "from": [{"podSelector": {}}]}
    by_cert_manager = render(reports={"enabled": True}, certificates={"source": "cert-manager"})
    certificate = by_cert_manager.one("Certificate", "gpu-tiers")
    host = f"gpu-tiers-reports.{certificate['metadata']['namespace']}.svc"
    assert host in certificate["spec"]["dnsNames"]


def test_a_drain_is_never_blocked(chart: Chart) -> None:
    assert chart.one("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_resource_quotas_are_written_only_on_request(render: Render) -> None:
    for enabled in (False, True):
        chart = render(backstop={"enabled": enabled})
        verbs = [rule["verbs"] for rule in rules(chart) if "resourcequotas" in rule["resources"]]
        assert verbs == [["list"], ["create", "update", "delete"]][: 1 + enabled]
