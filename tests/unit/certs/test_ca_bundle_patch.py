"""The patch that puts caBundle right: what it writes, and what it leaves alone."""

from copy import deepcopy

import jsonpatch
import pytest

from certs.ca_bundle import corrections


def configuration(*bundles: str | None) -> dict:
    """Return a configuration as the API server stores it, with one entry for each caBundle."""
    webhooks = [
        {
            "name": f"pods-{number}.gpu-tiers.dev",
            "clientConfig": {
                "service": {"name": "gpu-tiers", "namespace": "gpu-tiers", "path": "/mutate", "port": 443},
                **({"caBundle": bundle} if bundle else {}),
            },
            "failurePolicy": "Fail",
        }
        for number, bundle in enumerate(bundles)
    ]
    return {"metadata": {"name": "zz-gpu-tiers", "resourceVersion": "7"}, "webhooks": webhooks}


def bundles(found: dict) -> list[str | None]:
    return [webhook["clientConfig"].get("caBundle") for webhook in found["webhooks"]]


@pytest.mark.parametrize("before", [(None,), ("b2xk",), ("bmV3", None), ("b2xk", "bmV3", "b2xk")])
def test_every_entry_ends_with_the_bundle_and_nothing_else_changes(before):
    found = configuration(*before)
    after = jsonpatch.apply_patch(found, corrections(found, "bmV3"))
    assert bundles(after) == ["bmV3"] * len(before)
    expected = deepcopy(found)
    for webhook in expected["webhooks"]:
        webhook["clientConfig"]["caBundle"] = "bmV3"
    assert after == expected


@pytest.mark.parametrize("right", [("bmV3",), ("bmV3", "bmV3"), ()])
def test_a_configuration_that_is_right_is_not_written(right):
    assert corrections(configuration(*right), "bmV3") == []


def test_a_configuration_that_changed_meanwhile_is_not_written():
    seen = configuration(None)
    now = {**seen, "metadata": {"name": "zz-gpu-tiers", "resourceVersion": "8"}}
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(now, corrections(seen, "bmV3"))
