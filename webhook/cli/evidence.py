"""What a manifest tells of its workload type, whatever else is wrong with it; never which tier that earns."""

from dataclasses import replace

from webhook.admission.webhook import POD
from webhook.cli.documents import Document
from webhook.cli.inside import gpus_elsewhere, pod_of_unknown, row_by_shape
from webhook.cli.plain import plain
from webhook.policy.evidence import Evidence
from webhook.policy.objects import Pod
from webhook.policy.refusal import Refused
from webhook.policy.scope import may_hold_gpus, type_of_workload
from webhook.policy.tier_policy import TierPolicy
from webhook.policy.view import view
from webhook.policy.words import Kind
from webhook.policy.workload import workload
from webhook.policy.workload_type import workload_type


def evidence_of(document: Document, policy: TierPolicy) -> Evidence | None:
    """What tells the workload type; None where no GPU is asked for, so that the object is left alone."""
    kind = Kind(document.group, document.kind)
    try:
        if kind == POD:
            pod = view(document.tree, Pod)
            return workload_type(pod, (), policy.kinds) if may_hold_gpus(pod, policy) else None
        row = policy.kinds.by_kind.get(kind)
        if row is not None:
            seen = replace(row, templates=row_by_shape(document).templates) if gpus_elsewhere(document, policy) else row
            return type_of_workload(workload(document.tree, seen), policy)
        made = pod_of_unknown(document)
        return workload_type(view(made, Pod), (), policy.kinds) if made else None
    except Refused:
        mended = Document(document.source, plain(document.tree))
        return None if mended.tree == document.tree else evidence_of(mended, policy)
