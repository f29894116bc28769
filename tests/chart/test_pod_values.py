"""Values for clusters that want the webhook's pods, or the objects around them, another way."""

import pytest

from .conftest import Render
from .helm import Chart, Manifest
from .test_values import container, pod_spec, pod_specs

ON_THE_NODES = {"hostNetwork": True, "ports": {"webhook": 19443, "metrics": 18080}}


def arguments(chart: Chart) -> dict[str, str]:
    return dict(each.removeprefix("--").split("=", 1) for each in container(chart.one("Deployment"))["args"][1:])


@pytest.fixture(scope="module")
def on_the_nodes(render: Render) -> Chart:
    return render(**ON_THE_NODES)


def test_the_webhook_listens_where_its_service_sends_the_calls(on_the_nodes: Chart) -> None:
    ports = {each["name"]: each["containerPort"] for each in container(on_the_nodes.one("Deployment"))["ports"]}
    assert ports == {"webhook": 19443, "metrics": 18080, "hand-over": 9445}
    options = arguments(on_the_nodes)
    assert (options["port"], options["metrics-port"]) == ("19443", "18080")
    sent = {each["port"]: each["targetPort"] for each in on_the_nodes.one("Service")["spec"]["ports"]}
    assert sent == {443: "webhook", 8080: "metrics"}, "what calls the Service need not know"


def test_on_the_nodes_network_an_old_pod_makes_room_before_a_new_one_starts(on_the_nodes: Chart) -> None:
    deployment = on_the_nodes.one("Deployment")
    spec = pod_spec(deployment)
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert not on_the_nodes.of("NetworkPolicy"), "it would not apply"


def test_on_the_nodes_network_the_page_is_for_those_with_a_token_alone(render: Render, on_the_nodes: Chart) -> None:
    """The pods' loopback address is the node's, and each of its processes would read the page."""
    assert "page-port" not in arguments(on_the_nodes)
    opened = render(**ON_THE_NODES, page={"authentication": {"enabled": True}})
    assert {name for name in arguments(opened) if name.startswith("page")} == {"page-tls-port"}


def test_the_pods_have_users_of_their_own_where_that_is_asked_for(render: Render) -> None:
    for chart, expected in ((render(), None), (render(hostUsers=False), False), (render(hostUsers=True), True)):
        for spec in pod_specs(chart):
            assert spec.get("hostUsers") is expected


def test_people_may_read_the_log(render: Render) -> None:
    assert arguments(render())["log-format"] == "json"
    assert arguments(render(logFormat="console"))["log-format"] == "console"


def test_a_network_policy_opens_the_ports_that_are_listened_on(render: Render) -> None:
    spec = render(ports={"webhook": 10250}).one("NetworkPolicy")["spec"]
    assert [port["port"] for rule in spec["ingress"] for port in rule["ports"]] == [10250, 8080, 9445]


def test_the_api_server_waits_as_long_as_configured_and_never_long_for_what_is_not_ours(render: Render) -> None:
    for seconds, waits in ((1, {1}), (10, {2, 10})):
        chart = render(webhook={"timeoutSeconds": seconds}, mode="Enforce")
        entries = [*chart.entries().values(), *chart.entries("MutatingWebhookConfiguration").values()]
        assert {entry["timeoutSeconds"] for entry in entries} == waits


def test_annotations_reach_the_configurations_beside_cert_managers(render: Render) -> None:
    enforcer = {"admissions.enforcer/disabled": "true"}
    chart = render(webhook={"annotations": enforcer}, certificates={"source": "cert-manager"})
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = chart.one(kind)["metadata"]["annotations"]
        assert annotations == enforcer | {"cert-manager.io/inject-ca-from": "gpu-tiers/gpu-tiers"}


def test_an_issuer_of_your_own_signs_and_the_chart_makes_none(render: Render) -> None:
    issuer = {"name": "internal-ca", "kind": "ClusterIssuer"}
    chart = render(certificates={"source": "cert-manager", "issuerRef": issuer})
    assert not chart.of("Issuer")
    assert chart.one("Certificate")["spec"]["issuerRef"] == issuer | {"group": "cert-manager.io"}


def test_a_field_of_a_security_context_goes_with_null(render: Render) -> None:
    users = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}
    chart = render(podSecurityContext=users, securityContext={"runAsNonRoot": True})
    for spec in pod_specs(chart):
        assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        (only,) = spec["containers"]
        assert only["securityContext"]["runAsNonRoot"] is True
        assert only["securityContext"]["capabilities"] == {"drop": ["ALL"]}


EXTRA: Manifest = {
    "extraArgs": ["--lease-seconds=30"],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"}],
    "extraEnvFrom": [{"configMapRef": {"name": "proxy"}}],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "company-ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/company-ca", "readOnly": True}],
    "extraInitContainers": [{"name": "wait", "image": "example.com/wait"}],
    "extraContainers": [{"name": "proxy", "image": "example.com/proxy"}],
    "runtimeClassName": "gvisor",
    "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
}


def test_what_is_added_to_the_pod_stands_beside_what_the_chart_needs(render: Render) -> None:
    spec = pod_spec(render(**EXTRA).one("Deployment"))
    webhook, proxy = spec["containers"]
    assert (webhook["args"][-1], proxy["name"]) == ("--lease-seconds=30", "proxy")
    assert [each["name"] for each in webhook["env"]] == ["POD_NAMESPACE", "POD_NAME", "POD_IP", "HTTPS_PROXY"]
    assert webhook["envFrom"] == EXTRA["extraEnvFrom"]
    assert [each["name"] for each in webhook["volumeMounts"]] == ["policy", "tls", "tmp", "ca"]
    assert [each["name"] for each in spec["volumes"]] == ["policy", "tls", "tmp", "ca"]
    assert [each["name"] for each in spec["initContainers"]] == ["wait"]
    assert (spec["runtimeClassName"], spec["dnsConfig"]) == ("gvisor", EXTRA["dnsConfig"])


def test_extra_objects_are_maps_or_text_with_templates(render: Render) -> None:
    configuration = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-map"}}
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: text, namespace: {{ .Release.Namespace }}}\n"
    chart = render(extraObjects=[configuration, text])
    assert chart.one("ConfigMap", "gpu-tiers-map")
    assert chart.one("ConfigMap", "text")["metadata"]["namespace"] == "gpu-tiers"


def test_common_labels_are_on_every_object_and_pod_and_in_no_selector(render: Render) -> None:
    own = {"example.com/team": "platform"}
    chart = render(
        commonLabels=own,
        tenants=[{"name": "alpha", "spec": {"namespaceSelector": {}}}],
        metrics={each: {"enabled": True} for each in ("serviceMonitor", "prometheusRule", "dashboard")},
        rbac={"aggregateToView": True},
    )
    assert [each["kind"] for each in chart if own.items() - each["metadata"]["labels"].items()] == []
    deployment = chart.one("Deployment")
    assert own.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert not own.items() & deployment["spec"]["selector"]["matchLabels"].items()


def test_a_constraint_of_your_own_is_about_the_webhooks_pods(render: Render) -> None:
    zones = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    others = zones | {"labelSelector": {"matchLabels": {"app": "other"}}}
    deployment = render(topologySpreadConstraints=[zones, others]).one("Deployment")
    ours = {"matchLabels": deployment["spec"]["selector"]["matchLabels"]}
    assert pod_spec(deployment)["topologySpreadConstraints"] == [zones | {"labelSelector": ours}, others]


def test_rollouts_drains_and_probes_can_be_configured(render: Render) -> None:
    chart = render(
        replicas=3,
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 1}},
        podDisruptionBudget={"minAvailable": 2},
        revisionHistoryLimit=2,
        startupProbe={"failureThreshold": 600},
    )
    deployment = chart.one("Deployment")["spec"]
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": "50%", "maxUnavailable": 1}
    assert deployment["revisionHistoryLimit"] == 2
    budget = chart.one("PodDisruptionBudget")["spec"]
    assert budget["minAvailable"] == 2
    assert "maxUnavailable" not in budget
    probe = container(chart.one("Deployment"))["startupProbe"]
    assert (probe["periodSeconds"], probe["failureThreshold"]) == (1, 600)
    assert not render(podDisruptionBudget={"enabled": False}).of("PodDisruptionBudget")


def test_an_account_that_exists_gets_the_rights_and_roles_of_your_own_get_none(render: Render) -> None:
    chart = render(serviceAccount={"create": False, "name": "existing"})
    assert [each["metadata"]["name"] for each in chart.of("ServiceAccount")] == ["gpu-tiers-open-gates"]
    assert pod_spec(chart.one("Deployment"))["serviceAccountName"] == "existing"
    bound = [*chart.one("ClusterRoleBinding", "gpu-tiers")["subjects"], *chart.one("RoleBinding")["subjects"]]
    assert {each["name"] for each in bound} == {"existing"}
    seats = chart.one("FlowSchema")["spec"]["rules"][0]["subjects"]
    assert seats[0]["serviceAccount"]["name"] == "existing"
    alone = render(rbac={"create": False})
    assert not [each for each in alone if each["apiVersion"].startswith("rbac")]
    assert alone.one("ServiceAccount")


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ({"image": {"registry": "registry.example.com"}}, "registry.example.com/gpu-tiers:"),
        ({"global": {"imageRegistry": "mirror.example.com:5000/hub"}}, "mirror.example.com:5000/hub/gpu-tiers:"),
        ({"image": {"digest": f"sha256:{'0' * 64}", "registry": "r.example.com"}}, "r.example.com/gpu-tiers@sha256:"),
    ],
)
def test_an_air_gapped_cluster_pulls_from_its_own_registry(render: Render, values: Manifest, image: str) -> None:
    values = {"imagePullSecrets": [{"name": "own"}], **values}
    values["global"] = {"imagePullSecrets": [{"name": "umbrella"}, {"name": "own"}], **values.get("global", {})}
    chart = render(**values)
    for spec in pod_specs(chart):
        assert spec["containers"][0]["image"].startswith(image)
        assert spec["imagePullSecrets"] == [{"name": "own"}, {"name": "umbrella"}]


def test_critical_pods_have_the_quota_that_gke_wants(render: Render) -> None:
    spec = render().one("ResourceQuota")["spec"]
    (scope,) = spec["scopeSelector"]["matchExpressions"]
    assert (spec["hard"], scope["values"]) == ({"pods": "100"}, ["system-cluster-critical"])
    assert not render(priorityClassName="platform").of("ResourceQuota")
    assert not render(resourceQuota={"enabled": False}).of("ResourceQuota")


def test_a_service_of_two_families_and_a_socket_for_both(render: Render) -> None:
    families = {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6", "IPv4"]}
    chart = render(service=families, listenAddress="::")
    spec = chart.one("Service")["spec"]
    assert {name: spec[name] for name in families} == families
    assert arguments(chart)["host"] == "::"


def test_the_crd_is_left_to_what_applies_it_beside_the_chart(render: Render) -> None:
    assert not render(crds={"enabled": False}).of("CustomResourceDefinition")


def test_a_scrape_is_relabelled(render: Render) -> None:
    relabelings = [{"action": "labeldrop", "regex": "pod"}]
    monitor = {"enabled": True, "endpoint": {"relabelings": relabelings, "scrapeTimeout": "10s"}}
    (endpoint,) = render(metrics={"serviceMonitor": monitor}).one("ServiceMonitor")["spec"]["endpoints"]
    assert endpoint == {
        "port": "metrics", "path": "/metrics", "interval": "30s", "relabelings": relabelings, "scrapeTimeout": "10s",
    }  # fmt: skip
