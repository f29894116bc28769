"""Turns AdmissionReview bytes into a request, and a verdict into bytes.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from webhook.objects.view import View

API_VERSION = "admission.k8s.io/v1"
WARNING_LENGTH = 256
"""Characters of a warning that survive once there are many: the API server cuts there."""

Operation = dict[str, Any]
"""One JSON patch operation (RFC 6902)."""


class BadReview(Exception):  # noqa: N818 - the caller's fault, answered with HTTP 400
    """The bytes are no AdmissionReview; the text says what is wrong with them."""


class GroupVersionKind(View, frozen=True):
    """The kind of the object under review."""

    group: str = ""
    version: str = ""
    kind: str = ""


class GroupVersionResource(View, frozen=True):
    """The resource that was asked for, without its subresource. Of a scale, the kind is no more than Scale."""

    group: str = ""
    version: str = ""
    resource: str = ""


class User(View, frozen=True):
    """Who sent the request to the API server."""

    username: str = ""


class Request(View, frozen=True):
    """What the API server asks. `object` and `old_object` stay bytes until somebody reads them."""

    uid: str
    kind: GroupVersionKind = GroupVersionKind()
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str = ""
    user_info: User = User()
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    dry_run: bool = False


class _Review(View, frozen=True):
    api_version: str
    kind: str
    request: Request


class Response(View, frozen=True, omit_defaults=True):
    """The answer, without the HTTP envelope."""

    uid: str
    allowed: bool
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: dict[str, str] | None = None


_decoder = msgspec.json.Decoder(_Review)


def decode(body: bytes) -> Request:
    """The request in an AdmissionReview. Raises BadReview with what is wrong."""
    try:
        review = _decoder.decode(body)
    except RecursionError:
        raise BadReview("the review is nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadReview(f"not an AdmissionReview: {error}") from None
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        got = f"{review.api_version[:60]} {review.kind[:60]}"
        raise BadReview(f"{got} is not understood; send {API_VERSION} AdmissionReview")
    if not review.request.uid:
        raise BadReview("request.uid: empty; the answer must repeat it")
    return review.request


def allow(
    request: Request,
    *,
    patch: Sequence[Operation] = (),
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> bytes:
    """Yes, with a patch or without one."""
    return _encode(
        Response(
            uid=request.uid,
            allowed=True,
            patch=base64.b64encode(msgspec.json.encode(patch)).decode() if patch else None,
            patch_type="JSONPatch" if patch else None,
            warnings=tuple(_printable(warning) for warning in warnings),
            audit_annotations=dict(audit) if audit else None,
        )
    )


def deny(request: Request, sentence: str, *, for_now: bool = False, audit: Mapping[str, str] | None = None) -> bytes:
    """No, as kubectl shows it: Error from server (Forbidden): … denied the request: SENTENCE.

    A no `for_now` says ServiceUnavailable. It has no retryAfterSeconds: clients that are built on client-go would wait
    for it up to ten times within their worker, and a controller has few of these for the workloads of all tenants.
    """
    status: dict[str, Any] = {"code": 403, "reason": "Forbidden", "message": flat(sentence)}
    if for_now:
        status |= {"code": 503, "reason": "ServiceUnavailable"}
    notes = dict(audit) if audit else None
    return _encode(Response(uid=request.uid, allowed=False, status=status, audit_annotations=notes))


def _encode(response: Response) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def _printable(warning: str) -> str:
    """A warning without control characters: the API server drops one that has them, and cuts a long one."""
    line = flat(warning)
    return line if len(line) <= WARNING_LENGTH else line[: WARNING_LENGTH - 1] + "…"


def flat(text: str) -> str:
    """On one line and without control characters, which a terminal would obey."""
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)
