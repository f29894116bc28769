"""The table of metrics, and what becomes of gauges when what they read fails or ends."""

from collections.abc import Iterable

import pytest
from prometheus_client import generate_latest

from webhook.server.metric_table import TABLE
from webhook.server.metrics import Metrics, Sample


def test_names_are_as_prometheus_wants_them() -> None:
    for row in TABLE.values():
        assert row.name.startswith("gpu_tiers_")
        assert row.name.endswith("_total") == (row.kind == "counter")
        assert row.help.endswith(".")


def test_a_gauge_shows_what_is_there_at_the_scrape_and_forgets_a_deleted_tenant() -> None:
    metrics, booked = Metrics(), {("alpha", "gpu-training", ""): 4.0, ("beta", "", "h100"): 1.0}
    metrics.sample("gpu_tiers_ledger_gpus", booked.items)
    assert 'gpu_tiers_ledger_gpus{flavor="",tenant="alpha",tier="gpu-training"} 4.0' in shown(metrics)

    del booked["alpha", "gpu-training", ""]

    assert "alpha" not in shown(metrics)
    assert 'gpu_tiers_ledger_gpus{flavor="h100",tenant="beta",tier=""} 1.0' in shown(metrics)


def test_a_gauge_that_cannot_be_read_does_not_take_the_others_with_it(lines: list[dict[str, object]]) -> None:
    def broken() -> Iterable[Sample]:
        raise RuntimeError

    metrics = Metrics()
    metrics.sample("gpu_tiers_ledger_gpus", broken)
    metrics.sample("gpu_tiers_policy_info", lambda: [(("Enforce", "false", "a1b2"), 1.0)])

    assert 'gpu_tiers_policy_info{adoption="false",digest="a1b2",mode="Enforce"} 1.0' in shown(metrics)
    assert lines[0]["metric"] == "gpu_tiers_ledger_gpus"


def test_an_operation_that_kubernetes_does_not_have_makes_no_series() -> None:
    metrics = Metrics()
    for invented in range(1000):
        metrics.review("/mutate", f"CREATE{invented}", "error")

    labels = {"path": "/mutate", "operation": "", "outcome": "error"}
    assert metrics.registry.get_sample_value("gpu_tiers_reviews_total", labels) == 1000


def test_a_label_too_few_is_an_error() -> None:
    with pytest.raises(ValueError, match="Incorrect label count"):
        Metrics().count("gpu_tiers_refusals_total", "gpu-training")


def shown(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()
