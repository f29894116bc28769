"""Labels of gpu-tiers on a namespace that say nothing, or nothing that there is."""

from collections.abc import Mapping

import pytest

from tests.builders import a_policy, a_tenant
from tests.builders.words import words
from webhook.policy.metadata_keys import namespace_warnings

POLICY = a_policy(preset="three-tier")


def said(labels: Mapping[str, str], *tenants: object) -> list[str]:
    return [*words(namespace_warnings(labels, POLICY, tenants))]


@pytest.mark.parametrize(
    ("value", "likely"),
    [("Enfroce", "Enforce"), ("enforced", "Enforce"), ("wran", "Warn"), ("dry-run", "Audit, Warn or Enforce")],
)
def test_a_mode_that_is_none(value: str, likely: str) -> None:
    (sentence,) = said({"gpu-tiers.dev/mode": value})
    assert sentence.startswith(
        f'[unknown-mode] label gpu-tiers.dev/mode: "{value}" is no mode, so the mode of the installation applies'
    )
    assert sentence.endswith(f"; did you mean {likely}?")


@pytest.mark.parametrize("value", ["Enforce", "enforce", "WARN", ""])
def test_a_mode_in_any_case(value: str) -> None:
    assert said({"gpu-tiers.dev/mode": value}) == []


@pytest.mark.parametrize(
    ("value", "likely"), [("scavneger", "scavenger"), ("gold", "critical, normal or scavenger"), ("Normal", "normal")]
)
def test_a_default_tier_that_is_none(value: str, likely: str) -> None:
    (sentence,) = said({"gpu-tiers.dev/default-tier": value})
    assert sentence.startswith(f'[unknown-default-tier] label gpu-tiers.dev/default-tier: unknown tier "{value}"')
    assert sentence.endswith(f"; did you mean {likely}?")


@pytest.mark.parametrize(("value", "likely"), [("Refuze", "Refuse"), ("never", "Assign or Refuse")])
def test_a_choice_that_is_none(value: str, likely: str) -> None:
    assert said({"gpu-tiers.dev/untiered": value}) == [
        f'[unknown-choice] label gpu-tiers.dev/untiered: "{value}" is ignored; did you mean {likely}?'
    ]
    assert said({"gpu-tiers.dev/untiered": "refuse"}) == []


@pytest.mark.parametrize(
    ("key", "likely"),
    [
        ("gpu-tiers.dev/moed", "gpu-tiers.dev/mode"),
        ("gpu-tiers.dev/tier", "gpu-tiers.dev/default-tier"),
        ("gpu-tiers.dev/team", "gpu-tiers.dev/mode or default-tier"),
        ("gpu-tier.dev/default-tier", "gpu-tiers.dev/default-tier"),
        ("gputiers.dev/mode", "gpu-tiers.dev/mode"),
        ("gpu-tires.dev/mode", "gpu-tiers.dev/mode"),
        ("gpu-tiers.io/mode", "gpu-tiers.dev/mode"),
    ],
)
def test_a_key_that_means_nothing_on_a_namespace(key: str, likely: str) -> None:
    assert said({key: "x"}) == [f"[unknown-key] label {key} is unknown and ignored; did you mean {likely}?"]


@pytest.mark.parametrize(
    "key",
    ["team", "kubernetes.io/metadata.name", "gpu-tiers.example.com/mode", "gpu-tier.dev/team", "gpu-test.dev/mode"],
)
def test_keys_of_others_are_theirs(key: str) -> None:
    assert said({key: "x"}) == []


def test_of_thousands_the_first_few_are_reported() -> None:
    assert len(said({f"gpu-tiers.dev/moed-{n}": "x" for n in range(5000)})) == 3


def test_a_key_by_which_a_tenant_is_recognised_has_a_meaning() -> None:
    alpha = a_tenant("alpha", namespaceSelector={"matchLabels": {"gpu-tiers.dev/tenant": "alpha"}}).view()
    assert said({"gpu-tiers.dev/tenant": "alpha"}, alpha) == []
    assert said({"gpu-tiers.dev/tenent": "alpha"}, alpha) != []
