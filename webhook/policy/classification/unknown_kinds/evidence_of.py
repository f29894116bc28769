"""What a manifest tells of its workload type, whatever else is wrong with it; never which tier that earns."""

from dataclasses import replace

from webhook.admission.webhook import POD
from webhook.cli.documents import Document
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import view
from webhook.policy.assignment.scope import may_hold_gpus, type_of_workload
from webhook.policy.classification.classify import classify
from webhook.policy.classification.evidence import Evidence
from webhook.policy.classification.unknown_kinds.inside import gpus_elsewhere, pod_of_unknown, row_by_shape
from webhook.policy.classification.unknown_kinds.plain import plain
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import workload


def evidence_of(document: Document, policy: TierPolicy) -> Evidence | None:
    """What tells the workload type; None where no GPU is asked for, so that the object is left alone."""
    kind = GroupKind(document.group, document.kind)
    try:
        if kind == POD:
            pod = view(document.tree, Pod)
            return classify(pod, (), policy.kinds) if may_hold_gpus(pod, policy) else None
        row = policy.kinds.by_kind.get(kind)
        if row is not None:
            seen = replace(row, templates=row_by_shape(document).templates) if gpus_elsewhere(document, policy) else row
            return type_of_workload(workload(document.tree, seen), policy)
        made = pod_of_unknown(document)
        return classify(view(made, Pod), (), policy.kinds) if made else None
    except Refused:
        mended = Document(document.source, plain(document.tree))
        return None if mended.tree == document.tree else evidence_of(mended, policy)
