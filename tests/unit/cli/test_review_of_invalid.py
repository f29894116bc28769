"""`review` calls invalid what the API server refuses whatever a webhook says.

tests/apiserver/test_invalid_manifests.py shows that it does.
"""

import json

import pytest

from tests.builders.invalid import ANOTHERS, INVALID, NEVER, PATCH, VALID, Invalid, of_template
from tests.builders.words import without_id
from tests.unit.cli.reviewing import findings, review
from webhook.config.yaml_text import trees


@pytest.mark.parametrize("case", INVALID, ids=lambda each: each.name)
def test_what_the_api_server_refuses_is_called_invalid_with_the_field_and_what_it_takes(case: Invalid) -> None:
    code, out, _ = review("-f", "-", stdin=case.manifest)
    said = [line.removeprefix("  invalid: ") for line in out.splitlines() if line.startswith("  invalid: ")]
    assert [*map(without_id, said)] == [case.said]
    assert code == 1
    (found,) = findings("-f", "-", stdin=case.manifest)
    assert (found["verdict"], found["allowed"]) == ("Denied", False)


@pytest.mark.parametrize("manifest", [*VALID, PATCH, ANOTHERS])
def test_what_it_takes_is_not(manifest: str) -> None:
    code, out, _ = review("-f", "-", stdin=manifest)
    assert "invalid: " not in out
    assert code == 0


def test_a_kind_in_the_wrong_place_is_reviewed_as_what_it_is_and_left_alone_by_nobody() -> None:
    pod = next(case.manifest for case in INVALID if case.name == "a Pod of apps")
    _, out, _ = review("-f", "-", "-f", "-", stdin=pod)
    assert "left alone" not in out
    assert "  tier: gpu-training\n" in out
    _, out, _ = review("-f", "-", "--only", "refused", stdin=f"{pod}---\n{VALID[0]}")
    assert "2 objects: 1 gets a tier, 1 refused, 0 left alone\n" in out


def test_a_template_whose_pods_are_refused_is_called_so() -> None:
    """The API server takes such a Job, and none of its pods."""
    never = "      preemptionPolicy: Never\n"
    code, out, _ = review("-f", "-", stdin=of_template("batch/v1", "Job", pods=NEVER + never))
    assert "invalid: spec.template.spec.preemptionPolicy: Never, but no PriorityClass is named" in out
    assert code == 1
    named = never + "      priorityClassName: gpu-batch\n"
    assert "invalid: " not in review("-f", "-", stdin=of_template("batch/v1", "Job", pods=NEVER + named))[1]


def test_objects_within_an_unknown_kind_are_checked_too() -> None:
    (job,) = trees(next(case.manifest for case in INVALID if case.name == "a Job that says nothing of restarts"))
    work = {"apiVersion": "work.example.com/v1", "kind": "ManifestWork", "metadata": {"name": "w"}}
    code, out, _ = review("-f", "-", stdin=json.dumps(work | {"spec": {"manifests": [job]}}))
    assert code == 1
    assert "left alone" not in out
