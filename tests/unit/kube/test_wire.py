"""The bytes on the wire: lines of a watch, and errors."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from webhook.kube.client import lines, metadata_of, page_of
from webhook.kube.errors import Conflict, Failed, Forbidden, Gone, Invalid, NoSuchApi, NotFound, Unauthorized, failure


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece


@pytest.mark.parametrize(
    "given",
    [
        (b"one\ntwo\n",),
        (b"o", b"ne\nt", b"wo", b"\n"),
        (b"one\n", b"two", b"\n", b"cut o"),
    ],
)
async def test_lines_are_put_together_and_a_broken_last_one_is_none(given):
    assert [line async for line in lines(pieces(*given))] == [b"one", b"two"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (404, NotFound),
        (403, Forbidden),
        (401, Unauthorized),
        (409, Conflict),
        (410, Gone),
        (422, Invalid),
        (500, Failed),
    ],
)
def test_an_error_says_what_the_api_server_said(code, kind):
    error = failure("GET", "/api/v1/pods", code, b'{"kind":"Status","message":"pods is forbidden"}')
    assert type(error) is kind
    assert str(error) == f"GET /api/v1/pods: HTTP {code}, pods is forbidden"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"message":null}', b"\xff"])
def test_an_answer_that_is_no_status_still_has_a_code(body):
    error = failure("GET", "/api", 502, body)
    assert (type(error), error.code, str(error)) == (Failed, 502, "GET /api: HTTP 502")


@pytest.mark.parametrize(
    "body",
    [b"404 page not found\n", b'{"kind":"Status","message":"the server could not find the requested resource"}'],
)
def test_an_api_that_is_not_served_is_distinguished_from_an_object_that_is_not_there(body):
    assert type(failure("GET", "/apis/example.com/v1/things/a", 404, body)) is NoSuchApi


def test_what_tells_one_state_of_an_object_from_another():
    found = metadata_of(msgspec.Raw(b'{"metadata":{"name":"a","uid":"1","resourceVersion":"7","labels":{}}}'))
    assert (found.name, found.uid, found.resource_version) == ("a", "1", "7")
    with pytest.raises(Failed, match="metadata of an object can't be read"):
        metadata_of(msgspec.Raw(b'{"metadata":7}'))


@pytest.mark.parametrize("items", [b"null", b"[]"])
def test_an_empty_list_of_metadata_alone_has_null_items(items):
    """kube-apiserver 1.37 writes a PartialObjectMetadataList so."""
    body = b'{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"7"},"items":' + items + b"}"
    page = page_of(body, "/api/v1/nodes")
    assert (page.metadata.resource_version, list(page.items or ())) == ("7", [])
