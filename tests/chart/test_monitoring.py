"""Objects that the chart adds on request for the Prometheus operator and Grafana."""

import json

import yaml

from .conftest import Refuse, Render
from .helm import CHART

KINDS = {"ServiceMonitor", "PrometheusRule"}


def test_without_being_asked_it_adds_nothing(render: Render) -> None:
    """A cluster without the operator's CRDs could not take it."""
    assert not KINDS & {each["kind"] for each in render()}
    assert {each["metadata"]["name"] for each in render().of("ConfigMap")} == {
        "gpu-tiers",
        "gpu-tiers-ceilings",
        "gpu-tiers-active",
    }


def test_a_service_monitor_scrapes_the_port_that_the_service_has(render: Render) -> None:
    chart = render(
        metrics={"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"}}
    )
    monitor, service = chart.one("ServiceMonitor"), chart.one("Service")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"] == [{"port": "metrics", "path": "/metrics", "interval": "15s"}]
    assert "metrics" in [each["name"] for each in service["spec"]["ports"]]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


def test_a_prometheus_that_looks_in_its_own_namespace_finds_both(render: Render) -> None:
    asked = {"enabled": True, "namespace": "monitoring"}
    chart = render(metrics={"serviceMonitor": asked, "prometheusRule": asked})
    assert {chart.one(kind)["metadata"]["namespace"] for kind in KINDS} == {"monitoring"}
    assert chart.one("ServiceMonitor")["spec"]["namespaceSelector"] == {"matchNames": ["gpu-tiers"]}


def test_outside_the_cluster_there_is_nothing_to_scrape(render: Render) -> None:
    outside = {"webhook": {"url": "https://gpu-tiers.example.com"}, "metrics": {"serviceMonitor": {"enabled": True}}}
    assert not render(**outside).of("ServiceMonitor")


def test_the_rules_are_those_of_the_file(render: Render) -> None:
    groups = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    rule = render(metrics={"prometheusRule": {"enabled": True, "labels": {"role": "alerts"}}}).one("PrometheusRule")
    assert rule["metadata"]["labels"]["role"] == "alerts"
    assert rule["spec"]["groups"] == groups


def test_each_alert_links_to_its_section_where_the_page_is_stored(render: Render) -> None:
    address = "https://docs.example.com/gpu-tiers/alerts.md"
    rule = render(metrics={"prometheusRule": {"enabled": True, "runbookUrl": address}}).one("PrometheusRule")
    headings = (CHART.parents[1] / "docs" / "alerts.md").read_text().lower()
    for each in rule["spec"]["groups"][0]["rules"]:
        page, _, anchor = each["annotations"]["runbook_url"].partition("#")
        assert page == address
        assert f"\n## {anchor}\n" in headings


def test_grafanas_sidecar_finds_the_dashboard(render: Render) -> None:
    chart = render(metrics={"dashboard": {"enabled": True, "namespace": "monitoring"}})
    found = chart.one("ConfigMap", "gpu-tiers-dashboard")
    assert found["metadata"]["namespace"] == "monitoring"
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    written = json.loads((CHART / "files" / "dashboard.json").read_text())
    assert json.loads(found["data"]["gpu-tiers.json"]) == written


def test_a_label_that_is_no_text_and_an_address_that_is_none_are_refused(refuse: Refuse) -> None:
    assert "metrics.serviceMonitor.labels.a" in refuse(metrics={"serviceMonitor": {"labels": {"a": 1}}})
    assert "metrics.prometheusRule.runbookUrl" in refuse(metrics={"prometheusRule": {"runbookUrl": "wiki"}})
