"""The pods that a workload asks for by its spec, and why it asks for none."""

from webhook.cli.manifests.documents import Document
from webhook.objects.refusal import Refused
from webhook.objects.view import at, listed
from webhook.policy.workloads.kind_table import KindTable
from webhook.policy.workloads.templates import pod_templates
from webhook.policy.workloads.workload import has_ended, is_suspended, manager_elsewhere


def asks_for_none(document: Document, kinds: KindTable) -> str:
    """Return why a workload's own controller makes no pods, by its spec and its end; "" if it does.

    An earlier refusal of its pods does not matter then. A suspended CronJob leaves its active Jobs alone.
    """
    tree, row = document.tree, kinds.by_kind.get(document.group_kind)
    if has_ended(tree):
        found = [each for each in listed(at(tree, "status.conditions")) if isinstance(each, dict)]
        failed = next((each for each in found if each.get("type") == "Failed" and each.get("status") == "True"), None)
        end = f"failed ({failed.get('reason')}: {failed.get('message')})" if failed else "ended"
        return f"It has {end}, and makes no pods any more."
    if is_suspended(tree) and not listed(at(tree, "status.active")):
        by = "by a queue such as Kueue or by hand"
        return f"It is suspended (spec.suspend), so it has no pods until it is resumed, {by}."
    if document.kind == "Deployment" and at(tree, "spec.paused") is True and not at(tree, "status.replicas"):
        return f"It is paused (spec.paused): it makes no pods until kubectl rollout resume deployment/{document.name}."
    if row and row.managed_by and (manager := manager_elsewhere(tree, row)):
        return f"{manager} manages it ({row.managed_by.field}), so no controller of this cluster makes its pods."
    return "It asks for no pod: its count is 0." if pods_asked(document, kinds) == 0 else ""


def pods_asked(document: Document, kinds: KindTable) -> int | None:
    """Return how many pods a workload asks for; None if unknown."""
    row = kinds.by_kind.get(document.group_kind)
    try:
        counts = [each.count for each in pod_templates(document.tree, row)] if row else []
    except Refused:
        return None
    return sum(counts) if counts else None


def has_all_pods(document: Document, exist: int, due: int) -> bool:
    """Tell whether a workload has all the pods that are `due`, so that its next pod replaces an existing one."""
    status = document.tree.get("status") or {}
    if document.group == "apps" and "replicas" in status:
        exist = min(exist, status.get("updatedReplicas", 0))  # the others are of an old template
    if isinstance(completions := at(document.tree, "spec.completions"), int):
        due = min(due, completions - status.get("succeeded", 0))
    return 0 < due <= exist and at(document.tree, "spec.schedule") is None  # a CronJob's next Job is another one
