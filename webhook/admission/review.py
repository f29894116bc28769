"""Turns AdmissionReview bytes into a request, unless there is too much to judge, and a verdict into bytes.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from webhook.objects.group_kind import POD, GroupKind
from webhook.objects.refusal import OBJECT, Reason, Refusal, Refused, cut
from webhook.objects.user import User
from webhook.objects.view import View

API_VERSION = "admission.k8s.io/v1"
WARNING_LENGTH = 256
"""The most characters of a warning, because the API server cuts longer ones once there are many."""

HEAD_BYTES = 16 * 1024
"""The bytes at a review's start that have its uid, kinds and names, of 253 characters each at most."""
_AFTER_NAMES = b',"userInfo":'
"""The field that an API server writes after the names. Within a string the quotation marks would be escaped."""

MOST_PARTS = 50_000
MOST_MIB = 10
"""MiB of the largest object. etcd stores 1.5 MiB by default, and a review may have six bytes for each byte of that."""

TOO_LARGE = Refusal(Reason.INVALID, "too-large-object", OBJECT, parts=f"{MOST_PARTS:,}", mib=MOST_MIB)

_Members = dict[str, msgspec.Raw]

Operation = dict[str, Any]
"""One JSON patch operation (RFC 6902)."""


class BadReview(Exception):  # noqa: N818 - the caller's fault, answered with HTTP 400
    """The bytes are no AdmissionReview, or one that the webhook does not handle; the text says what is wrong."""


class GroupVersionKind(View, frozen=True):
    """The kind of the object under review."""

    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)


class GroupVersionResource(View, frozen=True):
    """The requested resource, without its subresource. It names what is scaled: the kind of a scale is only Scale."""

    group: str = ""
    version: str = ""
    resource: str = ""


class Request(View, frozen=True):
    """The request of the API server. `object` and `old_object` stay bytes until somebody reads them."""

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


class Truncated(Request, frozen=True):
    """A review whose object was not read. The object is refused for this problem; `for_now`: a retry may pass."""

    problem: str = ""
    for_now: bool = False


class _Review(View, frozen=True):
    api_version: str
    kind: str
    request: Request


_decoder = msgspec.json.Decoder(_Review)


def decode(body: bytes) -> Request:
    """Return the request in an AdmissionReview. Raises BadReview with what is wrong."""
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


def truncated(head: bytes, problem: str, *, for_now: bool = False) -> Truncated | None:
    """Return the review with this beginning, and why its rest is not read; None if the beginning lacks the names."""
    beginning, follows, _ = head[:HEAD_BYTES].partition(_AFTER_NAMES)
    if not follows:
        return None
    try:
        known = decode(beginning + b"}}")
    except BadReview:
        return None
    return Truncated(**msgspec.structs.asdict(known), problem=problem, for_now=for_now)


def judgeable(request: Request) -> Request | None:
    """Return the review. Objects that are too large are cut: without managedFields, and without a large status.

    Raises Refused if an object is too large nevertheless. Returns None for an object other than a pod that was too
    large before the update already: it is admitted, and its pods are judged one by one.
    """
    if len(request.object) <= MOST_PARTS and len(request.old_object) <= MOST_PARTS:
        return request
    new, old = _without_ballast(request.object), _without_ballast(request.old_object)
    if old is None and request.kind.group_kind != POD:
        return None
    if new is None or old is None:
        raise Refused.of(TOO_LARGE)
    if new is request.object and old is request.old_object:
        return request
    return msgspec.structs.replace(request, object=new, old_object=old)


def _without_ballast(raw: msgspec.Raw) -> msgspec.Raw | None:
    """Return the object if it is small enough, or without managedFields and a large status; None if still too large."""
    if _is_small(raw):
        return raw
    members = msgspec.json.decode(raw, type=_Members)
    if len(members.get("status", b"")) > MOST_PARTS:
        del members["status"]
    if metadata := msgspec.json.decode(members.get("metadata", b"null"), type=_Members | None):
        metadata.pop("managedFields", None)
        members["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    trimmed = msgspec.Raw(msgspec.json.encode(members))
    return trimmed if _is_small(trimmed) else None


def _is_small(raw: msgspec.Raw) -> bool:
    """Tell whether an object has at most MOST_PARTS commas and opening brackets, also those in texts, and MOST_MIB.

    An object never has more parts than such characters.
    """
    text, counted = bytes(raw), 0
    for sign in (b",", b"{", b"["):
        counted += text.count(sign)
        if counted > MOST_PARTS:
            return False
    return len(text) <= MOST_MIB << 20


def allow(
    request: Request,
    *,
    patch: Sequence[Operation] = (),
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> bytes:
    """Return the AdmissionReview that admits the object, with a patch, warnings and audit annotations."""
    answer: dict[str, object] = {"allowed": True}
    if patch:
        answer |= {"patch": base64.b64encode(msgspec.json.encode(patch)).decode(), "patchType": "JSONPatch"}
    if warnings:
        answer["warnings"] = [cut(flat(each), WARNING_LENGTH) for each in warnings]
    return _encode(request, answer, audit)


FORBIDDEN = (403, "Forbidden")
ALREADY_EXISTS = (409, "AlreadyExists")
TRY_AGAIN = (429, "TooManyRequests")
"""The code after which Argo Workflows, Flyte and Airflow wait and create the object again; Flyte doesn't after 503.

The answer has no retryAfterSeconds, because clients based on client-go would wait for it up to ten times within their
worker, and a controller has few workers for the workloads of all tenants.
"""


def deny(
    request: Request, sentence: str, status: tuple[int, str] = FORBIDDEN, audit: Mapping[str, str] | None = None
) -> bytes:
    """Return the refusing AdmissionReview. kubectl prints: Error from server (Forbidden): … denied the request: …"""
    code, reason = status
    refused = {"code": code, "reason": reason, "message": flat(sentence)}
    return _encode(request, {"allowed": False, "status": refused}, audit)


def _encode(request: Request, answer: Mapping[str, object], audit: Mapping[str, str] | None) -> bytes:
    response = {"uid": request.uid, **answer, **({"auditAnnotations": audit} if audit else {})}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def flat(text: str) -> str:
    """Return the text on one line, with spaces for unprintable characters.

    A terminal would obey control characters, and the API server drops a warning that has any.
    """
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)
