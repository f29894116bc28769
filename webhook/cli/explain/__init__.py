"""`gpu-tiers explain`: why a pod or a workload has its tier, and what would change it."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from webhook.cli.cluster.installed import mode_of_file, read_active_policy
from webhook.cli.cluster.one_object import WHAT, NoSuchPod, asked_cluster, kind_and_name, object_named
from webhook.cli.cluster.target import Target
from webhook.cli.command import Answer, Form, Table, with_options, write
from webhook.cli.explain.explanation import explained
from webhook.cli.manifests.documents import BadInput
from webhook.objects.refusal import Phrase
from webhook.report.explained import UNMARKED, ClassShown, Explained, why_it_differs
from webhook.report.tenants import above_quota
from webhook.sentences.sentence import sentence

What = Annotated[list[str], typer.Argument(metavar="POD|WORKLOAD", help=f"{WHAT}.")]


@with_options
def explain(
    what: What, output: Form = "table", namespace: str | None = None, policy: Path | None = None, *, target: Target
) -> None:
    """Show why a pod or a workload has its tier and its checkpoint hook, what it would get now, and what changes that.

    Use it to ask why this tier, this hook or this refusal. `why-pending` shows why a pod does not run, and `usage` how
    full its tenant's quota is.

    Example: `gpu-tiers explain job/train -n team-alpha`

    The webhook's own code judges the object as if it were created now. Nothing is written.
    Exits with 2 if there is no such object, or no answer.
    """
    write(explain_answer(asyncio.run(_explained(target, what, namespace, policy)), datetime.now(UTC)), output)


async def _explained(target: Target, what: list[str], namespace: str | None, file: Path | None) -> Explained:
    named = kind_and_name(what)
    home = target.namespace(namespace)
    async with target.client() as client:
        policy = await read_active_policy(client, file)
        try:
            tree = await object_named(client, policy.kinds, home, *named)
        except NoSuchPod as problem:
            see = f"gpu-tiers why-pending {named[1]} -n {home} says whether it was evicted"
            raise BadInput(f"{problem}. {see}") from None
        async with asked_cluster(client, policy, home) as asked:
            found = await explained(asked, tree)
            return replace(found, mode=None, mode_of_file=policy.mode.name) if file else found


def explain_answer(found: Explained, now: datetime) -> Answer:
    return Answer(found.as_json(), tuple(_tables(found)), tuple(_notes(found, now)), found.unread)


def _tables(found: Explained) -> Iterator[Table]:
    rows = [*(_of_a_pod(found, found.class_now) if found.class_now else _of_a_workload(found))]
    if rows:
        yield Table(("About", "Answer"), rows, f"{found.object} in namespace {found.namespace}")
    if found.assignment and found.assignment.trace:
        steps = [(str(each.get("step")), _found(each)) for each in found.assignment.trace]
        of_new = " of a new one" if found.class_now else ""
        yield Table(("Step", "Found"), steps, f"The steps{of_new}: the first that finds a tier decides")
    if found.tenant and found.tenant.rows:
        columns = "Row", "Used", "Reserved", "For queue", "Hard", "Quota left"
        quota = [(each.subject, *each.numbers) for each in found.tenant.rows]
        yield Table(columns, quota, f"Quota of tenant {found.tenant.name}")


def _found(asked: Phrase) -> str:
    return sentence(Phrase("found", found=asked.get("found"), too_weak=asked.get("too_weak")))


def _of_a_pod(found: Explained, has: ClassShown) -> Iterator[tuple[str, str]]:
    yield "tier", has.tier or (f"none: {has.name} is not a tier's class" if has.name else "none")
    unmarked = f"gpu-tiers leaves it alone: {found.left_alone}" if found.left_alone else UNMARKED
    yield "decided by", found.assigned_by or f"nobody: {unmarked}"
    yield "class", str(has)
    if found.judged:
        yield from _common(found)
        yield "a new one", f"{_new_one(found, has)}{f'; it {found.waits_for}' if found.waits_for else ''}"


def _new_one(found: Explained, has: ClassShown) -> str:
    if found.message:
        return f"would be refused now: {found.message}"
    if found.left_alone:
        return f"would be left alone: {found.left_alone}"
    if found.class_of_new is None:
        return "would get no tier"
    if found.demotion:
        return found.demotion
    if has.name == found.class_of_new.name:
        return "would get the same"
    why = f": {why_it_differs(found.assigned_by, owned=found.owned)}" if found.assigned_by else ""
    return f"would get {found.class_of_new}, decided by {found.decided_by}{why}"


def _of_a_workload(found: Explained) -> Iterator[tuple[str, str]]:
    if found.left_alone:
        yield "tier", f"gpu-tiers leaves it alone: {found.left_alone}"
    elif found.decided_by:
        asked = None if found.gang or found.assignment is None else found.assignment.demoted_from
        yield "tier", asked or found.tier or "none"
        yield "decided by", found.decided_by
    if found.judged:
        yield from _common(found)
    if found.class_of_new:
        yield "class of a new pod", str(found.class_of_new)
    if found.demotion:
        yield "over quota", found.demotion
    if found.pods:
        yield "its pods", "; ".join(f"{each.count} with {each.now}" for each in found.pods)
    if found.stopped:
        yield "a new pod", found.stopped


def _common(found: Explained) -> Iterator[tuple[str, str]]:
    if found.evidence:
        yield "type", str(found.evidence)
    elif not found.left_alone:
        yield "type", "unknown"
    about = "checkpoint" if found.class_now else "hook of a new pod"
    for hook in found.templates:
        yield about, f"{hook.template}: {hook}" if len(found.templates) > 1 else str(hook)
    yield from (("autoscaler", each) for each in found.autoscaler)
    yield from _tenant(found)


def _tenant(found: Explained) -> Iterator[tuple[str, str]]:
    if found.tenant:
        may = ", ".join(found.tenant.may_use) or "no tier"
        beyond = above_quota(found.tenant.on_exceed, found.tenant.rows)
        yield "tenant", f"{found.tenant.name}: may use {may}; beyond its quota: {beyond}"
    else:
        yield "tenant", "none: no TenantQuota selects the namespace"
    if found.gang:
        counts = f"{found.gang.booked} count as a whole; its pods use {found.gang.used} of them now"
        yield "booked whole", f"{found.gang.workload}: {counts}"


def _notes(found: Explained, now: datetime) -> Iterator[str]:
    yield from (f"{each.said_to_its_pod}." for each in found.reserved)
    if found.last_eviction:
        yield f"Its last eviction: {found.last_eviction}."
    if found.refused:
        yield f"{found.refused.said(now)} The refusal: {found.refused.sentence}"
    if found.tenant:
        yield from (f"Tenant {found.tenant.name}: {each}." for each in found.tenant.hours)
    yield from (f"warning: {each}" for each in found.warnings)
    if found.changes:
        yield f"What would change its tier: {found.changes[0]}"
        yield from found.changes[1:]
    if found.may_name is not None:
        may = ", ".join(found.may_name) or "none"
        yield f"tierAccess: RBAC. Tiers that you may name here: {may}. Each takes the ClusterRole '…-use-TIER'."
        yield f"Whether somebody has it: kubectl auth can-i use priorityclasses/TIER -n {found.namespace} --as USER"
    if found.mode not in (None, "Enforce"):
        done = "nothing is refused or changed" if found.mode == "Audit" else "nothing is refused"
        yield f"The mode is {found.mode} here: {done} yet."
    if found.mode_of_file:
        yield mode_of_file(found.mode_of_file)
