"""What gpu-tiers would write on an object, picked out of the object as an API server would store it.

The API server fills in defaults, and other webhooks write too; nobody wants to read those in a review.
"""

from collections.abc import Mapping
from typing import Any

from webhook.admission.patch import VOLUME
from webhook.admission.told_owner import TOLD_OWNER
from webhook.policy.assignment.kueue import PRIORITY_CLASS
from webhook.policy.checkpoint.hook_plan import DEFAULT_GRACE, HookPlan
from webhook.policy.values.hooks import HookKind

Tree = dict[str, Any]

_FIELDS = frozenset(
    {"priorityClassName", "priority", "preemptionPolicy", "lifecycle", "affinity", "topologySpreadConstraints"}
    | {"nodeSelector", "activeDeadlineSeconds", "env", "disruptionMode"}
)
_OURS = "gpu-tiers.dev/"
_OF_EVERY_POD = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Keys of the tolerations that the API server writes."""


def our_changes(sent: Tree, stored: Tree) -> Tree:
    """What was sent with what gpu-tiers writes. Of an object without its mark that is nothing."""
    return _object(sent, stored) if _marked(stored) else sent


def _marked(tree: Any) -> bool:
    if isinstance(tree, dict):
        return any(_is_mark(str(key)) or _marked(value) for key, value in tree.items())
    return isinstance(tree, list) and any(map(_marked, tree))


def _is_mark(key: str) -> bool:
    return key.startswith(_OURS) and key != TOLD_OWNER


def _object(sent: Mapping[str, Any], stored: Mapping[str, Any]) -> Tree:
    made = {key: _value(key, value, stored[key]) if key in stored else value for key, value in sent.items()}
    for key, value in stored.items():
        if key not in sent and (added := _added(key, value)) not in (None, {}, []):
            made[key] = added
    return made


def _value(key: str, sent: Any, stored: Any) -> Any:
    if key in ("labels", "annotations") and isinstance(sent, dict) and isinstance(stored, dict):
        return {**sent, **_marks(stored)}
    if isinstance(sent, dict) and isinstance(stored, dict):
        return _object(sent, stored)
    if isinstance(sent, list) and isinstance(stored, list):
        more = _added(key, stored[len(sent) :]) or []
        pairs = zip(sent, stored, strict=False)
        return [_value("", one, other) for one, other in pairs] + more
    return stored if key in _FIELDS or key == "terminationGracePeriodSeconds" else sent


def _added(key: str, stored: Any) -> Any:
    """What of a field that was not sent is gpu-tiers' doing."""
    if key in ("labels", "annotations"):
        return _marks(stored or {})
    if key in ("volumes", "volumeMounts"):
        return [each for each in stored if each.get("name") == VOLUME]
    if key == "tolerations":
        return [each for each in stored if each.get("key") not in _OF_EVERY_POD]
    if key == "terminationGracePeriodSeconds":
        return stored if stored != DEFAULT_GRACE else None
    return stored if key in _FIELDS else None


def _marks(stored: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in stored.items() if _is_mark(key) or key == PRIORITY_CLASS}


def hook_of(sent: Tree, made: Tree) -> HookPlan | None:
    """The hook that a pod got: by the preStop handler that is new in its containers, else by its new grace period."""
    before, after = sent.get("spec") or {}, made.get("spec") or {}
    pairs = enumerate(zip(before.get("containers") or [], after.get("containers") or [], strict=False))
    new = {index: handler for index, (old, now) in pairs if (handler := _pre_stop(now)) != _pre_stop(old)}
    grace = after.get("terminationGracePeriodSeconds", DEFAULT_GRACE)
    if not new and grace == before.get("terminationGracePeriodSeconds", DEFAULT_GRACE):
        return None
    return HookPlan(_kind(next(iter(new.values()), {})), grace, tuple(new))


def _pre_stop(container: Mapping[str, Any]) -> Tree:
    return (container.get("lifecycle") or {}).get("preStop") or {}


def _kind(handler: Tree) -> HookKind:
    """The kind whose handler it is."""
    if "exec" not in handler:
        return "http" if "httpGet" in handler else "sleep" if "sleep" in handler else "sigterm"
    script = " ".join(handler["exec"].get("command") or ())
    return "file" if "/listening ]" in script else "signal" if "kill -s " in script else "exec"
