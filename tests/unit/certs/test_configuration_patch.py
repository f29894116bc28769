"""The patch that puts a webhook configuration right: what it writes, and what it leaves alone."""

from copy import deepcopy
from typing import Any

import jsonpatch
import pytest

from certs.configurations import SECRET, Seen, corrections
from certs.make import utc_now

HERE = f"/{'0' * 32}/mutate"


def configuration(*entries: tuple[str, str]) -> dict[str, Any]:
    """Return a configuration as the API server stores it: one entry for each caBundle and path, "" for none."""
    webhooks = [
        {
            "name": f"pods-{number}.gpu-tiers.dev",
            "clientConfig": {
                "service": {
                    "name": "gpu-tiers",
                    "namespace": "gpu-tiers",
                    "port": 443,
                    **({"path": path} if path else {}),
                },
                **({"caBundle": bundle} if bundle else {}),
            },
            "failurePolicy": "Fail",
        }
        for number, (bundle, path) in enumerate(entries)
    ]
    return {"metadata": {"name": "zz-gpu-tiers", "resourceVersion": "7"}, "webhooks": webhooks}


def corrected(found: dict[str, Any], bundle: str | None = "bmV3") -> dict[str, Any]:
    after: dict[str, Any] = jsonpatch.apply_patch(found, corrections(found, "/mutate", bundle))
    return after


def paths(found: dict[str, Any]) -> set[str]:
    return {webhook["clientConfig"]["service"]["path"] for webhook in found["webhooks"]}


@pytest.mark.parametrize(
    "before",
    [
        [("", "")],
        [("b2xk", HERE)],
        [("bmV3", HERE), ("", "")],
        [("b2xk", "/mutate"), ("bmV3", ""), ("b2xk", f"/{'1' * 32}/validate")],
    ],
)
def test_every_entry_ends_with_the_bundle_and_one_secret_path_and_nothing_else_changes(before):
    found = configuration(*before)
    after = corrected(found)
    (path,) = paths(after)
    assert SECRET.fullmatch(path)
    assert path == HERE if HERE in dict(before).values() else path.endswith("/mutate")
    expected = deepcopy(found)
    for webhook in expected["webhooks"]:
        webhook["clientConfig"]["caBundle"] = "bmV3"
        webhook["clientConfig"]["service"]["path"] = path
    assert after == expected


def test_a_new_path_is_another_one_each_time():
    assert paths(corrected(configuration(("", "")))) != paths(corrected(configuration(("", ""))))


def test_where_another_writes_the_bundle_the_path_alone_is_written():
    found = configuration(("b2xk", ""), ("", ""))
    after = corrected(found, None)
    (path,) = paths(after)
    assert after == configuration(("b2xk", path), ("", path))


@pytest.mark.parametrize("right", [[("bmV3", HERE)], [("bmV3", HERE), ("bmV3", HERE)], []])
def test_a_configuration_that_is_right_is_not_written(right):
    assert corrections(configuration(*right), "/mutate", "bmV3") == []


def test_a_url_has_the_path_that_a_person_wrote():
    outside = configuration(("bmV3", HERE))
    for url, path in (
        ("https://gpu-tiers.example.com/mutate", "/mutate"),
        ("https://gpu-tiers.example.com:8443/of-our-own/mutate", "/of-our-own/mutate"),
        ("https://gpu-tiers.example.com", ""),
        ("https://gpu-tiers.example.com/elsewhere", ""),
    ):
        outside["webhooks"][0]["clientConfig"] = {"url": url, "caBundle": "bmV3"}
        assert corrections(outside, "/mutate", "bmV3") == []
        assert Seen(outside, utc_now()).paths == {path}
        assert Seen(outside, utc_now()).registered == bool(path)


def test_one_entry_whose_path_nobody_answers_makes_the_configuration_incomplete():
    assert Seen(configuration(("bmV3", HERE)), utc_now()).registered
    for path in ("", "/mutate", f"/{'0' * 31}/mutate"):
        assert not Seen(configuration(("bmV3", HERE), ("bmV3", path)), utc_now()).registered


def test_a_configuration_that_changed_meanwhile_is_not_written():
    seen = configuration(("", ""))
    now = {**seen, "metadata": {"name": "zz-gpu-tiers", "resourceVersion": "8"}}
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(now, corrections(seen, "/mutate", "bmV3"))
