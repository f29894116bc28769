"""What gpu-tiers would write on an object, picked out of the object as an API server would store it.

The API server fills in defaults, and other webhooks write too; nobody wants to read those in a review.
"""

from collections.abc import Mapping
from typing import Any

from webhook.admission import volcano_jobs
from webhook.admission.patch import VOLUME
from webhook.admission.told_owner import TOLD_OWNER
from webhook.objects.group_kind import POD, GroupKind
from webhook.policy.assignment.kueue import PRIORITY_CLASS
from webhook.policy.checkpoint.hook_plan import DEFAULT_GRACE, HookPlan
from webhook.policy.placement.schedulers import KAI_PREEMPTIBILITY, KAI_QUEUE, UNNAMED, VOLCANO_QUEUE
from webhook.policy.values.hooks import HookKind

Tree = dict[str, Any]

_FIELDS = frozenset(
    {"priorityClassName", "priority", "preemptionPolicy", "lifecycle", "affinity", "topologySpreadConstraints"}
    | {"nodeSelector", "activeDeadlineSeconds", "env", "disruptionMode"}
)
_OURS = "gpu-tiers.dev/"
_OF_EVERY_POD = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Keys of the tolerations that the API server writes."""


_MARKS = frozenset({PRIORITY_CLASS, KAI_QUEUE, KAI_PREEMPTIBILITY, VOLCANO_QUEUE})
"""Labels and annotations of others, which gpu-tiers writes."""
_NAMED = frozenset({"containers", "initContainers", "env"})
"""Lists whose items are known by name: another webhook may put one before those that were sent."""


def our_changes(sent: Tree, stored: Tree) -> Tree:
    """What was sent with what gpu-tiers writes. Of an object without its mark that is a Volcano Job's queue at most."""
    kind = _kind_of(sent)
    if kind == volcano_jobs.KIND:
        sent = _with_field(sent, stored, "queue", "default")
    if not _marked(stored):
        return sent
    made = _object(sent, stored)
    return _with_field(made, stored, "schedulerName", UNNAMED[-1]) if kind == POD else made


def _kind_of(tree: Tree) -> GroupKind:
    return GroupKind(str(tree.get("apiVersion", "")).rpartition("/")[0], str(tree.get("kind", "")))


def _with_field(made: Tree, stored: Tree, field: str, default: str) -> Tree:
    """With a field of the spec, unless it is what the API server or an operator fills in."""
    value = (stored.get("spec") or {}).get(field, default)
    return made if value == default else {**made, "spec": {**(made.get("spec") or {}), field: value}}


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
        named = key in _NAMED and all(isinstance(each, dict) for each in (*sent, *stored))
        pairs, new = _by_name(sent, stored) if named else (zip(sent, stored, strict=False), stored[len(sent) :])
        return [_value("", one, other) for one, other in pairs] + (_added(key, new) or [])
    return stored if key in _FIELDS or key == "terminationGracePeriodSeconds" else sent


def _by_name(sent: list[Tree], stored: list[Tree]) -> tuple[list[tuple[Tree, Tree]], list[Tree]]:
    """Each item that was sent beside the one that is stored of it, and those that are new."""
    found = {each.get("name"): each for each in stored}
    names = {each.get("name") for each in sent}
    pairs = [(each, found.get(each.get("name"), each)) for each in sent]
    return pairs, [each for each in stored if each.get("name") not in names]


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
    return {key: value for key, value in stored.items() if _is_mark(key) or key in _MARKS}


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
