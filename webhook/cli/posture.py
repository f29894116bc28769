"""`gpu-tiers posture`: which tier can evict which, what is saved then, and what each tenant may use."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from webhook.cli.cluster.installed import answering, arriving, installed_policy, mode_of_file, policy_in
from webhook.cli.cluster.reader import cluster_reader
from webhook.cli.cluster.target import Target, tenants_named
from webhook.cli.command import Answer, Form, Table, fail, warn, with_options, write
from webhook.cluster.listed import priority_classes, tenant_quotas
from webhook.cluster.scheduling_view import node_reservations
from webhook.page.posture_picture import posture_file
from webhook.report.gpus_now import at_risk_by_tier, read_risks
from webhook.report.posture import Posture, posture_of, reservations_shown
from webhook.report.tenants import not_ready


@with_options
def posture(
    *,
    tenant: list[str] | None = None,
    policy: Path | None = None,
    at_risk: bool = False,
    output: Literal[Form, "svg"] = "table",
    target: Target,
) -> None:
    """Show which tiers and other PriorityClasses can evict which, what is saved then, and what each tenant may use.

    Use it to ask what the rules are. `usage` shows what tenants use of their quotas now, and `report` what evictions
    have cost.

    Example: `gpu-tiers posture --policy policy.yaml`

    With --at-risk: the work that would be lost if the training pods of each tier were evicted now, of all tenants or of
    those named. `-o markdown` is for the page that a new tenant reads, and `-o svg` draws the tiers for it.
    Exits with 2 if there is no such tenant, or no answer.
    """
    if policy is not None:
        target.refuse_if_named("about a policy file")
        if at_risk:
            fail("--at-risk reads the pods of a cluster: leave out --policy")
        if tenant:
            fail(f"--policy: a policy file has no tenants; leave out {', '.join(tenant)}, or leave out --policy")
        found = posture_of(policy_in(policy))
    else:
        found = asyncio.run(_of_cluster(target, at_risk=at_risk, names=tenant or ()))
    shown = replace(found, tenants=tuple(tenants_named({each.name: each for each in found.tenants}, tenant or ())))
    if output == "svg":
        sys.stdout.write(posture_file(shown))
    else:
        write(posture_answer(shown, of_file=policy is not None), output)


async def _of_cluster(target: Target, *, at_risk: bool = False, names: Sequence[str] = ()) -> Posture:
    async with target.client() as client:
        quotas = await tenant_quotas(client)
        tenants = [each.tenant for each in quotas if each.tenant]
        installed = await installed_policy(client)
        policy, comes = answering(installed), arriving(installed)
        classes = (await priority_classes(client)).values()
        there = {each.name: each for each in classes if each.name not in comes or policy.tiers.of_class(each.name)}
        async with cluster_reader(client, policy) as reader:
            found = posture_of(reader.policy, tenants, there, await reader.supply())
            reasons = {each.name: not_ready(each) for each in quotas}
            shown = tuple(replace(each, not_ready=reasons[each.name]) for each in found.tenants)
            found = replace(found, tenants=shown)
            if reader.policy.classes:
                reading = node_reservations(client)
                reserved = await reader.part("nodes", reading, (), "which nodes are reserved for a pod")
                found = replace(found, reserved=reservations_shown(reserved))
        for each in reader.missing():
            warn(each)
        risks = at_risk_by_tier(await read_risks(client, policy, names), ()) if at_risk else ()
        work = {each.tier: each.work for each in risks}
        return replace(found, tiers=tuple(replace(each, at_risk=work.get(each.name)) for each in found.tiers))


def posture_answer(found: Posture, *, of_file: bool = False) -> Answer:
    return Answer(found, tuple(_tables(found)), tuple(_notes(found, of_file=of_file)))


def _tables(found: Posture) -> Iterator[Table]:
    rows = []
    for each in found.tiers:
        value = "refused, see below" if each.refused else str(each.value)
        evicts = ", ".join(each.evicts) or ("nobody" if each.preemption_policy == "Never" else "no tier")
        evicted_by, workloads = ", ".join(each.evicted_by) or "no tier", ", ".join(each.workloads) or "none"
        rows.append((each.name, value, evicts, evicted_by, workloads, "; ".join(each.hooks) or "-"))
    yield Table(("Tier", "Value", "Evicts", "Evicted by", "Workloads", "Types that save first"), rows, "Tiers")
    if found.classes:
        classes = [(each.name, str(each.value), ", ".join(each.evicts)) for each in found.classes]
        yield Table(("PriorityClass", "Value", "Evicts"), classes, "Other PriorityClasses")
    tenants, tiers = [], {None, "", *(each.name for each in found.tiers)}
    for tenant in found.tenants:
        default = f"{tenant.default_tier or '-'}{'' if tenant.default_tier in tiers else ' (no tier)'}"
        name = f"{tenant.name} (not Ready)" if tenant.not_ready else tenant.name
        tenants.append((name, tenant.ceiling, default, "; ".join(tenant.quotas) or "none", tenant.on_exceed))
    if tenants:
        yield Table(("Tenant", "May use", "Default tier", "GPUs", "Beyond that"), tenants, "Tenants")


def _notes(found: Posture, *, of_file: bool) -> Iterator[str]:
    tiers, asked = found.tiers, "pods that report are asked to save after"
    yield from (f"Tier {each.name}: its pods are refused: {each.refused}" for each in tiers if each.refused)
    at_risk = ((each.name, each.at_risk) for each in tiers if each.at_risk)
    yield from (f"Tier {name}: evicting all of its training pods now loses {work}" for name, work in at_risk)
    bounds = ((each.name, each.max_at_risk) for each in tiers if each.max_at_risk)
    yield from (f"Tier {name}: {asked} {most:,} s of unsaved work" for name, most in bounds)
    for tenant in found.tenants:
        named = any(text in tenant.not_ready for text in tenant.unknown)
        reasons = [tenant.not_ready] if tenant.not_ready and not named else []
        yield from (f"Tenant {tenant.name}: {text}" for text in (*reasons, *tenant.unknown))
    yield from (f"{each.said}." for each in found.dra)
    if found.device_preemption == "On":
        yield "preemption.dra is On: gpu-tiers evicts lower tiers for GPUs by DRA, as kube-scheduler does for others."
    yield from (f"{each.said}." for each in found.reserved)
    if found.adoption:
        yield "adoption is on: no tier evicts anybody until it ends."
    if of_file:
        yield mode_of_file(found.mode)
    elif found.mode != "Enforce":
        yield f"mode {found.mode}: nothing is refused{' or changed' if found.mode == 'Audit' else ''} yet."
