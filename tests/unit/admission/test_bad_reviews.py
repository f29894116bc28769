"""Bytes that are no review, and reviews that no rule of ours sends: the caller's fault, said clearly."""

import json
from typing import Any

import pytest

from tests.builders import Tree, a_pod
from tests.builders.world import FakeApi
from webhook.admission.review import BadReview, decode

MEBIBYTE = 1024 * 1024
DEEP = MEBIBYTE  # opening and closing brackets: two megabytes
GOOD: dict[str, Any] = json.loads(FakeApi().body(a_pod().asking()))


def changed(**request: object) -> bytes:
    return json.dumps({**GOOD, "request": {**GOOD["request"], **request}}).encode()


BAD_REVIEWS = {
    "empty": (b"", "not an AdmissionReview: Input data was truncated"),
    "not JSON": (b"hello", "not an AdmissionReview: JSON is malformed"),
    "not UTF-8": (b'{"kind": "\xff"}', "not an AdmissionReview: "),
    "half": (FakeApi().body(a_pod().asking())[:900], "not an AdmissionReview: Input data was truncated"),
    "two in one": (
        FakeApi().body(a_pod().asking()) * 2,
        "not an AdmissionReview: JSON is malformed: trailing characters",
    ),
    "null": (b"null", "not an AdmissionReview: Expected `object`, got `null`"),
    "a list": (b"[]", "not an AdmissionReview: Expected `object`, got `array`"),
    "no request": (json.dumps({**GOOD, "request": None}).encode(), "not an AdmissionReview: Expected `object`"),
    "apiVersion v1beta1": (
        json.dumps({**GOOD, "apiVersion": "admission.k8s.io/v1beta1"}).encode(),
        "admission.k8s.io/v1beta1 AdmissionReview is not understood; send admission.k8s.io/v1 AdmissionReview",
    ),
    "another kind": (
        json.dumps({**GOOD, "kind": "ConversionReview"}).encode(),
        "admission.k8s.io/v1 ConversionReview is not understood; send",
    ),
    "an endless kind": (json.dumps({**GOOD, "kind": "x" * 10_000}).encode(), "admission.k8s.io/v1 xxx"),
    "no uid": (changed(uid=""), "request.uid: empty; the answer must repeat it"),
    "uid null": (changed(uid=None), "not an AdmissionReview: Expected `str`, got `null`"),
    "uid a number": (changed(uid=7), "not an AdmissionReview: Expected `str`, got `int`"),
    "operation a list": (changed(operation=["CREATE"]), "not an AdmissionReview: Expected `str`, got `array`"),
    "two megabytes of nesting": (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":'
        + b"[" * DEEP
        + b"]" * DEEP
        + b"}}",
        "the review is nested too deep",
    ),
}


@pytest.mark.parametrize(("body", "sentence"), BAD_REVIEWS.values(), ids=BAD_REVIEWS)
def test_bytes_that_are_no_review(body: bytes, sentence: str) -> None:
    with pytest.raises(BadReview) as caught:
        decode(body)
    assert str(caught.value).startswith(sentence)
    assert len(str(caught.value)) < 200


NOT_REVIEWED = {
    "unknown kind": {"kind": {"group": "example.com", "version": "v1", "kind": "Gadget"}},
    "endless kind": {"kind": {"group": "example.com", "version": "v1", "kind": "G" * 10_000}},
    "no kind": {"kind": {}},
    "another group's Pod": {"kind": {"group": "example.com", "version": "v1", "kind": "Pod"}},
    "another group's PodGroup": {"kind": {"group": "scheduling.example.com", "version": "v1", "kind": "PodGroup"}},
    "status": {"subResource": "status"},
    "binding": {"subResource": "binding"},
    "eviction": {"subResource": "eviction"},
    "ephemeral containers": {"subResource": "ephemeralcontainers", "operation": "UPDATE"},
    "resize": {"subResource": "resize", "operation": "UPDATE"},
    "unknown operation": {"operation": "EXPLODE"},
    "no operation": {"operation": ""},
    "delete": {"operation": "DELETE", "object": None},
    "connect": {"operation": "CONNECT", "subResource": "exec"},
    "group updated": {
        "kind": {"group": "scheduling.k8s.io", "version": "v1beta1", "kind": "PodGroup"},
        "operation": "UPDATE",
    },
}


@pytest.mark.parametrize("changes", NOT_REVIEWED.values(), ids=NOT_REVIEWED)
async def test_reviews_that_no_rule_of_ours_sends(changes: Tree) -> None:
    world = FakeApi()
    for webhook in (world.webhooks.mutate, world.webhooks.validate):
        with pytest.raises(BadReview) as caught:
            await webhook(decode(changed(**changes)))
        assert "is not reviewed here" in str(caught.value)
        assert "correct the rules of the webhook configuration" in str(caught.value)
        assert len(str(caught.value)) < 260
    assert world.records == []
