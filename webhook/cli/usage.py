"""`gpu-tiers usage`: the usage of each tenant's quota, its GPU-hours over some time, or its unsaved work."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from webhook.cli.cluster.lease import warn_if_nobody_leads
from webhook.cli.cluster.target import Target, tenants_named
from webhook.cli.command import Answer, Form, Table, fail, warn, with_options, write
from webhook.cli.manifests.documents import BadInput
from webhook.cli.prometheus import gpu_hours_answer
from webhook.cluster.listed import CRD, serves_tenant_quotas, tenant_quotas
from webhook.kube.errors import Forbidden, NotFound
from webhook.policy.checkpoint.work_lost import Work, summed
from webhook.report.gpus_now import TenantAtRisk, read_risks
from webhook.report.tenants import RowShown, TenantShown, tenant_shown

BAR = 20
"""Characters of a whole bar."""


@with_options
def usage(
    *,
    tenant: list[str] | None = None,
    since: str = "",
    prometheus: str = "",
    at_risk: bool = False,
    output: Form = "table",
    target: Target,
) -> None:
    """Show what each tenant uses of its quota, row by row, and who is in its queue.

    Use it to ask how much of the quota is left. `why-pending` is about one pod or workload, `posture` shows what
    tenants may use, and `report` what evictions have cost.

    Example: `gpu-tiers usage alpha`

    QUOTA LEFT is what the tenant may still use, whether GPUs of the cluster are free. What the queue
    reserves is left to higher tiers.
    In a bar █ runs, ▓ has no node yet, ▒ is booked for pods not seen yet, and ▚ is reserved for the queue.
    With --at-risk: the GPU-hours that each tenant's training pods have worked, at most, since they saved last.
    With --since: the GPU-hours of each tenant by tier and flavor, for chargeback.
    Exits with 2 if there is no such tenant, or no answer.
    """
    if since and at_risk:
        fail("--since tells of the past, --at-risk of now: leave out one")
    if at_risk:
        shown = asyncio.run(_risks(target, tenant or ()))
        rows = []
        for each in shown:
            bound = f"{each.max_at_risk:,} s" if each.max_at_risk else "-"
            rows.append((each.tenant or "-", each.tier or "-", str(each.work), bound))
        total = f"Evicting all of these training pods now loses {summed(each.work for each in shown)}." if shown else ""
        table = Table(("Tenant", "Tier", "At risk", "Asked to save after"), rows)
        write(Answer(shown, (table,) if rows else (), (total or "No training pod runs.",)), output)
        return
    if since:
        target.refuse_if_named("with --since, which Prometheus answers")
        if not prometheus:
            fail("--since reads from Prometheus: name its address with --prometheus, such as http://localhost:9090")
        write(gpu_hours_answer(prometheus, since, tenant or ()), output)
        return
    found = asyncio.run(_tenants(target))
    write(usage_answer(tenants_named({each.name: each for each in found}, tenant or ())), output)


async def _tenants(target: Target) -> list[TenantShown]:
    async with target.client() as client:
        found = await tenant_quotas(client)
        try:
            if not found:  # another server that answers may have no TenantQuotas either
                with suppress(Forbidden):
                    await client.get("/version")
                    if not await serves_tenant_quotas(client):
                        warn(f"the CustomResourceDefinition {CRD} does not exist, so no quota holds")
        except NotFound as error:
            what = f"{error}: what answers is no API server of Kubernetes; check --kubeconfig and --context"
            raise BadInput(what) from None
        if found:
            await warn_if_nobody_leads(client, "the numbers are as of the last leader")
        return [tenant_shown(each) for each in found]


async def _risks(target: Target, names: Sequence[str]) -> list[TenantAtRisk]:
    async with target.client() as client:
        from webhook.cli.cluster.installed import read_active_policy  # noqa: PLC0415 - imports what reads a policy

        policy = await read_active_policy(client, None)
        found = sorted((await read_risks(client, policy, names)).items())
        most = policy.saves.max_at_risk
        return [TenantAtRisk(name, tier, Work(work, exact), most.get(tier)) for (name, tier, exact), work in found]


def usage_answer(found: Sequence[TenantShown]) -> Answer:
    columns = ("Tenant", "Row", "Usage", "Used", "Pending", "Reserved", "For queue", "Hard", "Quota left")
    rows = [
        (each.name, row.subject, bar(row), row.numbers[0], str(row.pending), *row.numbers[1:-1], row.numbers[-1] + odd)
        for each in found
        for odd in (" (not Ready)" if each.not_ready else "",)
        for row in each.rows
    ]
    notes = [f"{each.name}: {problem}" for each in found for problem in each.problems]
    without = {"charged elsewhere": "Kueue or KAI counts its GPUs"}
    alone = (each for each in found if not each.rows and (each.on_exceed in without or not each.problems))
    notes += [f"{each.name}: {without.get(each.on_exceed, 'no row limits its GPUs')}" for each in alone]
    notes += [f"{each.name}: {grant}" for each in found for grant in each.grants]
    if any(row.pending for each in found for row in each.rows):
        notes.append("Used includes Pending: pods without a node count too.")
    if not found:
        notes.append("There is no TenantQuota: no tenant has a quota.")
    hours = []
    for name, each in ((tenant.name, budget) for tenant in found for budget in tenant.budgets):
        used, hard, end = f"{each.used_hours:,}", f"{each.gpu_hours:,}", "used up" if each.used_up else "-"
        per = each.per or f"from {each.begins}"
        hours.append((name, each.of, per, used, hard, each.until or "-", each.runs_out or end))
    columns_of_hours = "Tenant", "GPU-hours of", "Per", "Used", "Hard", "Until", "Used up on, if running pods go on"
    tables = [Table(columns, rows), Table(columns_of_hours, hours), *(_line(each) for each in found)]
    return Answer(found, [each for each in tables if each.rows], notes)


def _line(tenant: TenantShown) -> Table:
    columns = ("Position", "Namespace", "Workload", "Tier", "Pods", "GPUs", "Since", "Waits for")
    rows = []
    for each in tenant.queue.entries:
        numbers = str(each.pods), str(each.gpus), str(each.since)
        rows.append((str(each.nth), each.namespace, each.workload, each.tier or "-", *numbers, each.waits_for))
    title = f"The queue of tenant {tenant.name}: {tenant.queue.sentence}. {tenant.queue_order}"
    return Table(columns, rows, title.rstrip(". "))


def bar(row: RowShown) -> str:
    """Return a bar of BAR characters, which are the limit of the row.

    They are pods on nodes, pods without a node, reservations for pods, those for the queue, and the rest. Usage above
    the limit does not lengthen the bar.
    """
    ends = [min(round(sum(row.shares[:nth]) * BAR), BAR) for nth in (1, 2, 3, 4)]
    lengths = [after - before for before, after in pairwise((0, *ends, BAR))]
    return "".join(sign * length for sign, length in zip("█▓▒▚░", lengths, strict=True))
