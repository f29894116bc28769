"""Marks the answers to the dry runs of `gpu-tiers check`."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from webhook.admission.review import Request
from webhook.report.replica_mark import ANNOTATION, ReplicaMark
from webhook.server.endpoint import Handler

_ASKS = f'"{ANNOTATION}"'.encode()
"""In quotes: other annotations of ours begin like it."""

Mark = Callable[[Literal["mutate", "validate"]], ReplicaMark]


def asks_for_mark(request: Request) -> bool:
    """Whether it is the dry run of such a check."""
    return request.dry_run and _ASKS in bytes(request.object)


def marked(webhook: Literal["mutate", "validate"], handler: Handler, mark: Mark) -> Handler:
    """The handler, whose answers to dry runs that ask for it bear the mark."""

    async def answer(request: Request, patience: float) -> bytes:
        answered = await handler(request, patience)
        if not asks_for_mark(request):
            return answered
        review: dict[str, Any] = msgspec.json.decode(answered)
        review["response"].setdefault("warnings", []).append(mark(webhook).warning())
        return msgspec.json.encode(review)

    return answer
