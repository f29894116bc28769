"""Reviews of workloads: the person who applies one reads the refusal that its pods would get out of sight.

A workload is neither patched nor booked. What was wrong before is no reason to refuse an update.
"""

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec

from webhook.admission.cluster_protocol import Cluster
from webhook.admission.facts import facts_of
from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.ledger.protocol import Ledger
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Named
from webhook.objects.refusal import Refused
from webhook.objects.view import read
from webhook.policy.decide_workload import decide_workload, fit_of, uncounted_in
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.warning_texts import said
from webhook.policy.workloads.workload import workload


async def validate(request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """A workload's verdict; on an update, a refusal of the same mistake that the old object had is only a warning.

    It stays refused where it asks for more GPUs than before. A warning that the old object had is not repeated:
    controllers update what they reconcile all the time.
    """
    verdict, refused = await _judged(request.object, request, cluster, ledger, policy)
    if request.operation != "UPDATE" or not (verdict.refusal or verdict.warnings):
        return verdict
    before, refused_before = await _judged(request.old_object, request, cluster, ledger, policy)
    verdict = replace(verdict, warnings=tuple(each for each in verdict.warnings if each not in before.warnings))
    if verdict.refusal is None or refused > refused_before or not _alike(verdict.refusal, before.refusal):
        return verdict
    return replace(verdict, refusal=None, warnings=(*verdict.warnings, verdict.refusal))


def _alike(refusal: str, before: str | None) -> bool:
    """Whether it is the same mistake, its numbers aside: a workload that is too large may be scaled down in steps."""
    return before is not None and re.sub(r"[0-9.]+", "", refusal) == re.sub(r"[0-9.]+", "", before)


async def _judged(
    raw: msgspec.Raw, request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy
) -> tuple[Verdict, Decimal]:
    """The verdict on the object as it is, or as it was, and the GPUs for which its quota refuses it.

    At an update usage counts its own pods, so it is left out.
    """
    try:
        row = policy.kinds.by_kind[GroupKind(request.kind.group, request.kind.kind)]
        tree, runtime = await cluster.completed(request.namespace, _tree(raw), row)
        own = workload(tree, row)
        facts = await facts_of(read(raw, Named).metadata, request.namespace, cluster, policy, own=own)
        decision = decide_workload(tree, facts, policy)
    except Refused as refused:
        return Verdict(refusal=refused.sentence), Decimal(0)
    notes = tuple(_uncounted(problem) for problem in facts.unread)
    if runtime:
        notes = (said("runtime-unread", runtime=runtime), *notes)
    if decision is None:
        return Verdict(warnings=(*uncounted_in(facts, policy), *notes)), Decimal(0)
    tenant = facts.tenant
    created = request.operation == "CREATE"
    usage = ledger.usage(tenant, decision.shared) if tenant and not tenant.charged_elsewhere and created else None
    fit = fit_of(decision, usage)
    name = tenant.name if tenant else None
    verdict = Verdict(assignment=decision.assignment, warnings=decision.warnings, tenant=name)
    return verdict.fitted(replace(fit, warnings=fit.warnings + notes)), fit.refused


def _uncounted(problem: str) -> str:
    """The warning on a claim that can't be read. It may be applied after the workload; its pods can't do without."""
    return f"{problem}, so its GPUs are not counted; the pods are refused until it can be read"


def _tree(raw: msgspec.Raw) -> dict[str, Any]:
    tree = msgspec.json.decode(raw)
    if not isinstance(tree, dict):
        raise Refused("object: not an object")
    return tree
