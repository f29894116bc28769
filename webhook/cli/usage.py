"""`gpu-tiers usage`: what each tenant uses of its quota, or has used over some time."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import typer

from webhook.cli.cluster_options import ContextOption, KubeconfigOption, Target, answered
from webhook.cli.documents import BadInput
from webhook.cli.listed import tenant_quotas, tenants_named
from webhook.cli.output import Answer, AnswerForm, FormOption, Table, fail, write
from webhook.kube.client import Client
from webhook.kube.errors import Forbidden, NotFound
from webhook.objects.refusal import shown
from webhook.readmodel.shown import Shown
from webhook.readmodel.tenants import RowShown, TenantShown, tenant_shown
from webhook.server.metric_table import GPU_SECONDS

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
        found = await tenant_quotas(client)
        if not found:
            await _require_api_server(client)
        return [tenant_shown(each) for each in found]


async def _require_api_server(client: Client) -> None:
    """Raises BadInput where some other server answers: it has no TenantQuotas either."""
    try:
        with suppress(Forbidden):
            await client.get("/version")
    except NotFound as error:
        raise BadInput(
            f"{error}: what answers is no API server of Kubernetes; check --kubeconfig and --context"
        ) from None


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


TIMEOUT = 30.0
MOST_BYTES = 32 * 2**20
"""Of an answer: some 100,000 series."""


class NoAnswer(Exception):  # noqa: N818 - what is said of it
    """What was asked can't be answered; the text says why, and what to do."""


class GpuHours(Shown, frozen=True):
    """What a tenant's pods held on nodes; a flavor is empty where the policy has none."""

    tenant: str
    tier: str
    flavor: str
    gpu_hours: float


def gpu_hours(prometheus: str, since: str) -> list[GpuHours]:
    """GPU-hours by tenant, tier and flavor, the most first within a tenant. Raises NoAnswer."""
    if not re.fullmatch(r"[1-9][0-9]{0,4}[mhdwy]", since):
        raise NoAnswer(f'--since: "{shown(since)}" is no time; write such as 12h, 30d or 4w')
    increase = f"increase({GPU_SECONDS.name}[{since}])"
    result = _asked(prometheus, f"sum by ({', '.join(GPU_SECONDS.labels)}) ({increase}) / 3600")
    try:
        found = [_gpu_hours_row(each["metric"], each["value"]) for each in result]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise NoAnswer(_not_prometheus(prometheus)) from error
    return sorted((each for each in found if each.gpu_hours), key=lambda each: (each.tenant, -each.gpu_hours))


def gpu_hours_answer(found: Sequence[GpuHours], since: str, names: Collection[str]) -> Answer:
    """What people read of it."""
    wanted = [each for each in found if not names or each.tenant in names]
    rows = [(each.tenant or "-", each.tier or "-", each.flavor or "-", f"{each.gpu_hours:.1f}") for each in wanted]
    total = f"{sum(each.gpu_hours for each in wanted):.1f} GPU-hours in {since}."
    nothing = f"Prometheus has no GPU-hours in {since}. Is gpu-tiers scraped, and does Prometheus keep {since}?"
    table = Table(("Tenant", "Tier", "Flavor", "GPU-hours"), rows)
    return Answer(wanted, (table,) if rows else (), (total if rows else nothing,))


def _gpu_hours_row(labels: Any, value: Any) -> GpuHours:
    tenant, tier, flavor = (str(labels.get(name, "")) for name in GPU_SECONDS.labels)
    return GpuHours(tenant, tier, flavor, round(float(value[1]), 3))


def _asked(prometheus: str, query: str) -> list[Any]:
    """The vector that Prometheus answers. Raises NoAnswer."""
    if urlsplit(prometheus).scheme not in ("http", "https"):
        raise NoAnswer(f'--prometheus: "{shown(prometheus)}" is no address; write such as http://localhost:9090')
    address = f"{prometheus.rstrip('/')}/api/v1/query?{urlencode({'query': query})}"
    try:
        with urlopen(address, timeout=TIMEOUT) as response:  # noqa: S310 - http or https, as looked at above
            body = response.read(MOST_BYTES)
    except HTTPError as error:
        raise NoAnswer(_refused(prometheus, error)) from error
    except (URLError, OSError, ValueError) as error:
        cause = getattr(error, "reason", error)
        reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
        raise NoAnswer(f"can't ask Prometheus at {shown(prometheus)}: {reason}; check --prometheus") from error
    try:
        return list(json.loads(body)["data"]["result"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NoAnswer(_not_prometheus(prometheus)) from error


def _refused(prometheus: str, error: HTTPError) -> str:
    with error:
        try:
            told = str(json.loads(error.read(MOST_BYTES))["error"])
        except (ValueError, KeyError, TypeError, OSError):
            told = str(error.reason)
    return f"Prometheus at {shown(prometheus)} answers {error.code}: {' '.join(told.split())}"


def _not_prometheus(prometheus: str) -> str:
    return f"what answers at {shown(prometheus)} is no Prometheus; check --prometheus"
