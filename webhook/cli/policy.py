"""`gpu-tiers policy`: whether a policy file is valid, and what changes for workloads if it becomes active."""

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path

import msgspec
import typer
from msgspec.structs import asdict, replace

from webhook.cli.cluster.installed import fields_named, read_active_policy
from webhook.cli.cluster.reader import cluster_reader
from webhook.cli.cluster.target import Target
from webhook.cli.cluster.workloads import Gathering, workloads_of
from webhook.cli.command import Answer, Form, Table, fail, with_options, write
from webhook.cli.manifests.documents import Document, LeftOut, documents
from webhook.cli.manifests.finding import verdict_of
from webhook.cli.manifests.inputs import Inputs, cluster_of, is_fact
from webhook.cli.manifests.judge import NO_TENANTS, in_all, judged_quickly
from webhook.cli.progress import shown_while
from webhook.cluster.offline import ClusterAbout
from webhook.config.load import DEFAULT_PRESET, policy_of, preset_file
from webhook.config.model import PolicyFile
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA
from webhook.policy.quota.tenant_status import overlaps, trouble_of
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.lint.snapshot import number_of
from webhook.report.object_verdict import NONE, ObjectVerdict, VerdictName


class Effect(Enum):
    """The meaning of a change for the object's owner: the first that applies, in singular and plural."""

    CREATED = ("is new", "are new")
    REMOVED = ("is removed", "are removed")
    UNREADY = ("is no longer Ready", "are no longer Ready")
    READY = ("becomes Ready", "become Ready")
    REFUSED = ("is refused", "are refused")
    QUEUED = ("is queued", "are queued")
    ADMITTED = ("is admitted", "are admitted")
    GAINED = ("gets a tier", "get a tier")
    LOST = ("loses its tier", "lose their tier")
    UP = ("goes up", "go up")
    DOWN = ("goes down", "go down")
    MOVED = ("changes its tier", "change their tier")
    ABOVE = ("changes above its quota", "change above their quota")
    HOOK = ("changes its hook", "change their hook")
    WARNED = ("changes its warnings", "change their warnings")


class FieldChange(msgspec.Struct, frozen=True):
    """A field that differs; a tier with the step that decided it, a refusal with its sentence."""

    field: str
    old: str
    new: str


class ObjectChange(msgspec.Struct, frozen=True):
    """An object with differences. `source` is its file and line, "" for objects of a cluster and for TenantQuotas."""

    source: str
    kind: str
    namespace: str
    name: str
    effect: Effect
    fields: tuple[FieldChange, ...]

    @property
    def title(self) -> str:
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


Judgement = tuple[ClusterAbout, TierPolicy]
"""The function that returns the cluster in which an object is judged, and the policy."""

Side = tuple[Sequence[Tenant], Sequence[Namespace], TierPolicy]
"""The tenants, the namespaces and the policy before a change, or after it."""


def tenant_changes(old: Side, new: Side) -> Iterator[ObjectChange]:
    """Yield the TenantQuotas that only one side has, and those whose condition Ready would change.

    Unknown names of tiers or flavors, and an overlap with an older tenant, make a TenantQuota not Ready.
    """
    sides: list[dict[str, str]] = []  # why each tenant is not Ready; "" if it is
    for tenants, namespaces, policy in (old, new):
        lost = overlaps(tenants, namespaces)
        sides.append({each.name: ": ".join(trouble_of(each, lost.get(each.name), policy) or ()) for each in tenants})
    for name in sorted(sides[0].keys() | sides[1].keys()):
        before, after = (found.get(name) for found in sides)
        if before is None or after is None:
            effect = Effect.CREATED if before is None else Effect.REMOVED
        elif bool(before) != bool(after):
            effect = Effect.UNREADY if after else Effect.READY
        else:
            continue
        field = FieldChange("Ready", *("absent" if each is None else each or "Active" for each in (before, after)))
        yield ObjectChange("", TENANT_QUOTA.kind, "", name, effect, (field,))


def _fields(before: ObjectVerdict, after: ObjectVerdict) -> Iterator[FieldChange]:
    """Yield the differences. If one policy refuses the object, only the verdict differs; if both do, nothing does."""
    denied = [each.verdict is VerdictName.DENIED for each in (before, after)]
    if any(denied):
        yield from () if all(denied) else (FieldChange("verdict", _with_reason(before), _with_reason(after)),)
        return
    if before.verdict is not after.verdict:
        yield FieldChange("verdict", before.verdict, after.verdict)
    if before.ranks != after.ranks:
        yield FieldChange("tier", _with_step(before), _with_step(after))
    if before.tiers and after.tiers and before.on_exceed != after.on_exceed:
        yield FieldChange("above quota", before.above_quota, after.above_quota)
    if before.hooks_with_grace != after.hooks_with_grace:
        yield FieldChange("hook", before.hooks_with_grace, after.hooks_with_grace)
    if set(before.warnings) != set(after.warnings):
        gone = [each for each in before.warnings if each not in after.warnings]
        come = [each for each in after.warnings if each not in before.warnings]
        yield FieldChange("warnings", "; ".join(gone) or NONE, "; ".join(come) or NONE)


def _with_reason(found: ObjectVerdict) -> str:
    reason = found.message or _with_step(found)
    return found.verdict if reason == NONE else f"{found.verdict}: {reason}"


def _with_step(found: ObjectVerdict) -> str:
    return f"{found.ranks} ({found.step})" if found.tiers else NONE


def _effect(before: ObjectVerdict, after: ObjectVerdict, policy: TierPolicy) -> Effect:
    waiting = {VerdictName.DENIED: Effect.REFUSED, VerdictName.QUEUED: Effect.QUEUED}
    if before.verdict is not after.verdict and not waiting.keys().isdisjoint((before.verdict, after.verdict)):
        return waiting.get(after.verdict, Effect.ADMITTED)
    if bool(before.tiers) != bool(after.tiers):
        return Effect.GAINED if after.tiers else Effect.LOST
    if before.ranks == after.ranks and before.on_exceed != after.on_exceed:
        return Effect.ABOVE
    if before.ranks == after.ranks:
        return Effect.HOOK if before.hooks_with_grace != after.hooks_with_grace else Effect.WARNED
    # The direction is known if the new policy has the old tier too, or the same tier has another value.
    old, new = before.tiers[0], after.tiers[0]
    known = old if old.name == new.name else policy.tiers.get(old.name)
    if known is None or known.value == new.value:
        return Effect.MOVED
    return Effect.UP if new.value > known.value else Effect.DOWN


Judged = tuple[bool, ObjectChange | None]
"""Whether either policy concerns an object, and its change."""


def judging_by_both(old: Judgement, new: Judgement) -> Callable[[Document], Awaitable[Judged]]:
    """Return a function that compares an object under the old policy and the new one."""

    async def judged(document: Document) -> Judged:
        before, after = [
            verdict_of(await judged_quickly(document, facts(document), policy), adoption=policy.adoption)
            for facts, policy in (old, new)
        ]
        concerned = any(each.verdict is not VerdictName.LEFT_ALONE for each in (before, after))
        fields = tuple(_fields(before, after))
        if not fields:
            return concerned, None
        effect = _effect(before, after, new[1])
        return concerned, ObjectChange(after.source, after.kind, after.namespace, after.name, effect, fields)

    return judged


def both(old: TierPolicy, new: TierPolicy) -> TierPolicy:
    """Return the new policy with the old one's kinds and GPUs too, so that all objects that concern either are read."""
    others = tuple(row for row in old.kinds.rows if row.group_kind not in new.kinds.by_kind)
    return replace(
        new,
        kinds=new.kinds.with_rows(others),
        resources={**old.resources, **new.resources},
        device_classes={**old.device_classes, **new.device_classes},
        shares=tuple(dict.fromkeys((*old.shares, *new.shares))),
    )


CHANGES = 1
NAME_BOTH = "name the old policy too: policy diff OLD NEW"

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="Compare and check policy files.")


class Compared(msgspec.Struct, frozen=True):
    """The manifests to judge by both policies, and the files with the TenantQuotas before and after the change."""

    workloads: list[str] | None = None
    filename: list[str] | None = None
    tenants: list[Path] | None = None
    new_tenants: list[Path] | None = None

    @property
    def inputs(self) -> Inputs:
        return Inputs(self.workloads, self.filename)


@app.command("diff")
@with_options
def diff(
    old: str,
    new: str | None = None,
    *,
    compared: Compared,
    namespace: str | None = None,
    output: Form = "table",
    target: Target,
) -> None:
    """Show what changes for workloads from one policy to another (tier, hook, verdict, warnings), and for tenants.

    Use it to ask what a change of the policy would do. `review` shows the answers of one policy, `test` checks what
    you expect, and `audit` shows which workloads contradict the active policy.

    Example: `gpu-tiers policy diff new.yaml`

    `policy diff NEW` compares the active policy with a new one for all GPU workloads of the cluster, as kubectl diff
    compares live objects with a file. `policy diff OLD NEW` compares two policies. With manifests no cluster is asked.
    Each workload is judged by itself as in Enforce, with all of its pods, against tenants that use nothing yet.
    Exits with 0 if nothing changes, with 1 if something does, and with 2 on bad input, as kubectl diff does.
    """
    if compared.inputs.given:
        target.refuse_if_named("about manifests")
        if compared.new_tenants and not compared.tenants:
            fail("--new-tenants: needs --tenants, which names the TenantQuotas before the change")
        if new is None:
            fail(f"manifests are compared without a cluster, so {NAME_BOTH}")
        found = asyncio.run(_of_files(old, new, compared, namespace))
    elif compared.tenants or compared.new_tenants:
        fail("--tenants: needs manifests; without manifests the TenantQuotas of the cluster are read")
    else:
        before, after = (old, new) if new else (None, old)
        found = asyncio.run(_of_cluster(before, after, namespace, target))
    write(found, output)
    sys.stdout.flush()
    raise typer.Exit(CHANGES if found.value["changed"] else 0)


async def _of_files(old: str, new: str, compared: Compared, namespace: str | None) -> Answer:
    """Compare manifests under two policies, each with its own files of TenantQuotas and Namespaces.

    Without --new-tenants both have the same files. Raises BadInput, ConfigError.
    """
    files, left_out = (fields_named(old), fields_named(new)), list[LeftOut]()
    policies = policy_of(files[0]), policy_of(files[1])
    asked = compared.inputs.read(namespace, left_out)
    judged = [each for each in asked if not is_fact(each)]
    sets = compared.tenants or (), compared.new_tenants or compared.tenants or ()
    worlds = [[*(each for path in some for each in documents(str(path))), *asked] for some in sets]
    clusters = [cluster_of(policy, world) for world, policy in zip(worlds, policies, strict=True)]
    judge = judging_by_both(*zip(map(in_all, clusters), policies, strict=True))
    worlds_known = zip((each.known for each in clusters), policies, strict=True)
    sides = [(known.tenants(), known.namespaces(), policy) for known, policy in worlds_known]
    of_tenants = [*tenant_changes(*sides)]
    found = [await judge(each) for each in shown_while("judging", judged)]
    changes = [*of_tenants, *(change for _, change in found if change)]
    without = () if any(each.known.tenants() for each in clusters) else (NO_TENANTS,)
    notes = [*_notes(*policies, files), *without, *(f"left out: {each}" for each in left_out)]
    return answer(changes, len(judged) + len(of_tenants), notes)


async def _of_cluster(old: str | None, new: str, namespace: str | None, target: Target) -> Answer:
    """Read the cluster once for both policies. Objects that both policies leave alone are not counted."""
    files = [fields_named(each) for each in (old, new) if each]
    after = policy_of(files[-1])
    async with target.client() as client:
        before = policy_of(files[0]) if old else await read_active_policy(client, None, instead=NAME_BOTH)
        async with cluster_reader(client, both(before, after)) as reader:
            there = await workloads_of(reader, namespace)
            policies = (replace(each, classes=reader.policy.classes) for each in (before, after))
            judge = judging_by_both(*((there.judged_by(each), each) for each in policies))
            gathering = Gathering(reader.policy.kinds, judge)
            await there.gather(gathering, namespace)
            found = gathering.found.values()
            objects = sum(any(concerned for concerned, _ in each.judged) for each in found)
            first = ((each, next((change for _, change in each.judged if change), None)) for each in found)
            changes = [replace(change, kind=each.kind.kind, name=each.name) for each, change in first if change]
            changes.sort(key=lambda each: (each.namespace, each.kind, each.name))
            notes = [*_notes(before, after, files), *there.notes]
            tenants = [each.tenant for each in there.listed.tenants if each.tenant and not namespace]
            spaces = there.listed.namespaces
            of_tenants = [*tenant_changes((tenants, spaces, before), (tenants, spaces, after))]
            return answer([*of_tenants, *changes], objects + len(of_tenants), notes, reader.missing())


def _notes(old: TierPolicy, new: TierPolicy, files: Iterable[PolicyFile]) -> Iterator[str]:
    # The mode of a file without one comes from the chart's values, so it is unknown here.
    if old.mode is not new.mode and all("mode" in each.model_fields_set for each in files):
        yield f"The mode changes from {old.mode.name} to {new.mode.name}; the objects are judged as in Enforce."


def answer(changes: Sequence[ObjectChange], objects: int, notes: Sequence[str], missing: Sequence[str] = ()) -> Answer:
    """Return the answer: a row for each changed field, and the object's name in its first row.

    The first note is a summary such as `3 of 120 objects change: 1 is refused, 2 go up`.
    """
    counts = Counter(each.effect for each in changes)
    effects = ", ".join(f"{counts[each]} {each.value[counts[each] > 1]}" for each in Effect if counts[each])
    change, by_effect = "changes" if len(changes) == 1 else "change", f": {effects}" if effects else ""
    summary = f"{len(changes)} of {number_of(objects, 'object')} {change}{by_effect}"
    rows = [
        ("" if number else each.title, change.field, f"{change.old} → {change.new}")
        for each in changes
        for number, change in enumerate(each.fields)
    ]
    records = [{**asdict(each), "effect": each.effect.name.lower().replace("_", "-")} for each in changes]
    value = {"objects": objects, "changed": len(changes), "changes": records}
    tables = [Table(("Object", "Field", "Old → new"), rows)] if rows else ()
    return Answer(value, tables, (summary, *notes), missing)


@app.command("check")
@with_options
def check_policy(file: Path) -> None:
    """Check a policy file: print each mistake with its field's path, or sum up a valid file in one line.

    Use it to ask whether the webhook would accept the file. `lint --policy` also finds what is valid but unwise.

    Example: `gpu-tiers policy check policy.yaml`

    Exits with 2 if the file has a mistake.
    """
    found = fields_named(file)
    preset = DEFAULT_PRESET if found.preset is None else found.preset
    own = not preset or found.tiers != preset_file(preset).tiers
    source = "tiers of its own" if own else f"tiers of preset {preset}"
    tiers = ", ".join(f"{tier.name} {tier.value}" for tier in sorted(found.tiers, key=lambda tier: -tier.value))
    others = f". Fields that it omits are those of preset {preset}" if preset and own else ""
    typer.echo(f"{file}: valid. Mode {found.mode}, {source}: {tiers}, default tier {found.default_tier}{others}")
