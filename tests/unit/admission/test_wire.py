"""The bytes of an answer, as the API server and kubectl read them."""

import base64
import json

from tests.builders import a_pod
from tests.builders.world import FakeApi
from webhook.admission import review
from webhook.admission.review import Request

REQUEST = review.decode(FakeApi().body(a_pod().asking()))


def response(sent: bytes) -> dict[str, object]:
    envelope = json.loads(sent)
    assert envelope.keys() == {"apiVersion", "kind", "response"}
    found: dict[str, object] = envelope["response"]
    return found


def test_a_request_keeps_its_object_as_bytes() -> None:
    assert isinstance(REQUEST, Request)
    assert json.loads(bytes(REQUEST.object)) == FakeApi().sent(a_pod().asking())
    assert (REQUEST.namespace, REQUEST.operation, REQUEST.dry_run) == ("team-alpha", "CREATE", False)
    assert REQUEST.user_info.username == "ada@example.com"


def test_yes_and_nothing_more() -> None:
    assert response(review.allow(REQUEST)) == {"uid": REQUEST.uid, "allowed": True}


def test_yes_with_a_patch() -> None:
    operation = {"op": "add", "path": "/spec/priority", "value": 400}
    found = response(review.allow(REQUEST, patch=[operation]))
    assert found["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(str(found["patch"]))) == [operation]


def test_no() -> None:
    found = response(review.deny(REQUEST, "not today", audit={"tier": "none"}))
    assert found == {
        "uid": REQUEST.uid,
        "allowed": False,
        "status": {"code": 403, "reason": "Forbidden", "message": "not today"},
        "auditAnnotations": {"tier": "none"},
    }


def test_a_warning_loses_what_the_api_server_would_drop_it_for() -> None:
    found = response(review.allow(REQUEST, warnings=["two\nlines\x07", "x" * 300]))
    assert found["warnings"] == ["two lines ", "x" * 255 + "…"]


def test_a_long_warning_ends_between_two_words() -> None:
    found = response(
        review.allow(REQUEST, warnings=["An " + "It is admitted, " * 20, f"{'x' * 254} by", "word " + "x" * 300])
    )
    assert found["warnings"] == ["An " + "It is admitted, " * 15 + "It is…", "x" * 254 + "…", "word " + "x" * 250 + "…"]


def test_a_warning_of_exactly_the_length_is_whole() -> None:
    assert response(review.allow(REQUEST, warnings=["x" * 256]))["warnings"] == ["x" * 256]


def test_unknown_fields_of_a_later_api_server_are_no_trouble() -> None:
    body = json.loads(FakeApi().body(a_pod().asking(), tomorrow={"a": [1]}))
    assert review.decode(json.dumps({**body, "later": 1}).encode()).uid == REQUEST.uid
