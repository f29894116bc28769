"""The mode that holds in a namespace."""

import pytest

from tests.builders import a_policy
from webhook.policy.values.tier_policy import MODE_LABEL, Mode


@pytest.mark.parametrize(
    ("installed", "label", "mode"),
    [
        ("Audit", "", Mode.Audit),
        ("Audit", "Enforce", Mode.Enforce),
        ("Warn", "Audit", Mode.Warn),
        ("Enforce", "Audit", Mode.Enforce),
        ("Warn", "nonsense", Mode.Warn),
    ],
)
def test_a_namespace_may_be_stricter_and_never_milder(installed: str, label: str, mode: Mode) -> None:
    assert a_policy(mode=installed).mode_in({MODE_LABEL: label}) is mode
