"""What a manifest tells of its workload type, of a known kind or not, whatever else is wrong with it."""

from dataclasses import replace

from webhook.objects.group_kind import POD
from webhook.objects.manifests import Manifest
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import view
from webhook.policy.classification.classify import classify, classify_workload
from webhook.policy.classification.evidence import Evidence
from webhook.policy.classification.unknown_kinds.inside import gpus_elsewhere, pod_of_unknown, row_by_shape
from webhook.policy.classification.unknown_kinds.plain import plain
from webhook.policy.quota.demand import may_hold_gpus
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import workload


def classify_manifest(manifest: Manifest, policy: TierPolicy) -> Evidence | None:
    """What tells the workload type; None where no GPU is asked for, so that the object is left alone."""
    kind = manifest.group_kind
    try:
        if kind == POD:
            pod = view(manifest.tree, Pod)
            return classify(pod, (), policy.kinds) if may_hold_gpus(pod, policy) else None
        row = policy.kinds.by_kind.get(kind)
        if row is not None:
            seen = replace(row, templates=row_by_shape(manifest).templates) if gpus_elsewhere(manifest, policy) else row
            return classify_workload(workload(manifest.tree, seen), policy)
        made = pod_of_unknown(manifest)
        return classify(view(made, Pod), (), policy.kinds) if made else None
    except Refused:
        mended = Manifest(manifest.source, plain(manifest.tree))
        return None if mended.tree == manifest.tree else classify_manifest(mended, policy)
