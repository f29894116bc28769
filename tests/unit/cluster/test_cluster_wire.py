"""What comes over the wire: lines of a watch, and errors."""

from collections.abc import AsyncIterator

import pytest

from webhook.kube.client import _lines
from webhook.kube.errors import Failed, Forbidden, Gone, NotFound, failure


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
    assert [line async for line in _lines(pieces(*given))] == [b"one", b"two"]


@pytest.mark.parametrize(("code", "kind"), [(404, NotFound), (403, Forbidden), (401, Forbidden), (410, Gone)])
def test_an_error_says_what_the_api_server_said(code, kind):
    error = failure("GET", "/api/v1/pods", code, b'{"kind":"Status","message":"pods is forbidden"}')
    assert isinstance(error, kind)
    assert str(error) == f"GET /api/v1/pods: HTTP {code}, pods is forbidden"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"message":null}', b"\xff"])
def test_an_answer_that_is_no_status_still_has_a_code(body):
    error = failure("GET", "/api", 502, body)
    assert (type(error), error.code, str(error)) == (Failed, 502, "GET /api: HTTP 502")
