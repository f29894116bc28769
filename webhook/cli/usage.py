"""`gpu-tiers usage`: what each tenant uses of its quota, or has used over some time."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from webhook.cli.cluster_options import ContextOption, KubeconfigOption, Target, answered
from webhook.cli.fail import fail
from webhook.cli.gpu_hours import NoAnswer, gpu_hours, gpu_hours_answer
from webhook.cli.installed import tenant_quotas, tenants_named
from webhook.cli.output import Answer, AnswerForm, FormOption, Table, write
from webhook.readmodel.tenants import RowShown, TenantShown, tenant_shown

BAR = 20
"""Characters of a whole bar."""


def usage(
    tenant: Annotated[
        list[str] | None, typer.Argument(metavar="TENANT", help="Tenants to show; without any, all.")
    ] = None,
    since: Annotated[str, typer.Option(help="Show GPU-hours of so long instead, such as 30d, from Prometheus.")] = "",
    prometheus: Annotated[
        str, typer.Option(envvar="GPU_TIERS_PROMETHEUS", help="Address of Prometheus, such as http://localhost:9090.")
    ] = "",
    output: FormOption = AnswerForm.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Show what each tenant uses of its quota, row by row: █ is used, ▒ is reserved.

    With --since: the GPU-hours of each tenant by tier and flavor, for chargeback. Exits with 2 where there is no such
    tenant, or no answer.
    """
    target = Target(kubeconfig, context)
    if since:
        target.refuse_if_named("with --since, which Prometheus answers")
        write(_over_time(since, prometheus, tenant or ()), output)
        return
    found = answered(lambda: _tenants(target))
    write(usage_answer(tenants_named({each.name: each for each in found}, tenant or ())), output)


def _over_time(since: str, prometheus: str, names: Sequence[str]) -> Answer:
    if not prometheus:
        fail("--since reads from Prometheus: name its address with --prometheus, such as http://localhost:9090")
    try:
        return gpu_hours_answer(gpu_hours(prometheus, since), since, names)
    except NoAnswer as problem:
        fail(str(problem))


async def _tenants(target: Target) -> list[TenantShown]:
    async with target.client() as client:
        return [tenant_shown(each) for each in await tenant_quotas(client)]


def usage_answer(found: Sequence[TenantShown]) -> Answer:
    """What people read of it."""
    columns = ("Tenant", "Row", "Usage", "Used", "Reserved", "Hard", "Free")
    rows = [(each.name, *_cells(row)) for each in found for row in each.rows]
    notes = [f"{each.name}: {problem}" for each in found for problem in each.problems]
    notes += [f"{each.name}: Kueue or KAI counts its GPUs" for each in found if each.on_exceed == "charged elsewhere"]
    if not found:
        notes.append("There is no TenantQuota: no tenant has a quota.")
    return Answer(found, (Table(columns, rows),) if rows else (), notes)


def _cells(row: RowShown) -> Iterator[str]:
    yield row.subject
    yield bar(row)
    yield from row.numbers


def bar(row: RowShown) -> str:
    """Used and reserved as parts of what is allowed. What is above that does not lengthen it."""
    used, reserved = row.shares
    full = min(round(used * BAR), BAR)
    waiting = min(round((used + reserved) * BAR), BAR) - full
    return "█" * full + "▒" * waiting + "░" * (BAR - full - waiting)
