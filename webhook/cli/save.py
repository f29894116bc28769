"""`gpu-tiers save`: asks trainings to save now and to train on."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace

from webhook.cli.cluster.installed import read_active_policy
from webhook.cli.cluster.one_object import WHAT, asked_cluster, kind_and_name, object_named, pods_of_workload
from webhook.cli.cluster.target import Target, tenants_named
from webhook.cli.command import Answer, Form, Table, fail, with_options, write
from webhook.cli.manifests.documents import BadInput, Document
from webhook.cluster.listed import listed_namespaces, tenant_quotas
from webhook.cluster.pod_informer import RUNNING
from webhook.cluster.watched import stored_namespace
from webhook.kube.client import RFC_3339, Client, listed_objects, path
from webhook.kube.errors import Forbidden, NotFound
from webhook.objects.group_kind import POD
from webhook.objects.pods import Pod
from webhook.objects.view import Tree, at, read, view
from webhook.policy.checkpoint.listen import has_report_volume
from webhook.policy.saves.save_requests import NOT_SAVED, SAVE_REQUESTED, SAVED
from webhook.policy.values.tenants import by_age, tenant_among
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.waiting import reported_at
from webhook.sentences.sentence import address

LOOK_SECONDS = 1.0


class SaveAsked(msgspec.Struct, frozen=True):
    """A pod that was asked to save. `outcome` is Saved or NotSaved, "" while unknown."""

    namespace: str
    name: str
    uid: str
    outcome: str = ""
    message: str = ""


class Trainings(msgspec.Struct, frozen=True):
    """The trainings to ask: those on a node, of a tenant and of a tier. Each field that is set narrows the choice."""

    node: str = ""
    tenant: str = ""
    tier: str = ""


@with_options
def save(
    what: Annotated[list[str] | None, typer.Argument(metavar="POD|WORKLOAD", help=WHAT)] = None,
    *,
    chosen: Trainings,
    wait: float = 0,
    output: Form = "table",
    namespace: str | None = None,
    policy: Path | None = None,
    target: Target,
) -> None:
    """Ask trainings to save now and to train on: before you drain a node, change a quota, or stop for the day.

    Use it by hand. Trainings save by themselves when their pods are deleted, and by the policy's `saves`.

    Example: `gpu-tiers save job/train -n team-alpha --wait 120`

    It writes the annotation gpu-tiers.dev/save-requested on the pods, so you need the right to patch them. Only pods
    that report are asked: those with a hook of kind `listen`, and `file` with `reports: true`. --node, --tenant and
    --tier look in all namespaces; together they narrow the choice, and so does -n.
    Exits with 1 if a training did not save within --wait, and with 2 without an answer.
    """
    if bool(what) == (chosen != Trainings()):
        fail("name a pod or workload, or trainings by --node, --tenant or --tier")

    async def ask() -> list[SaveAsked]:
        async with target.client() as client:
            active = await read_active_policy(client, policy)
            if chosen.tier and active.tiers.get(chosen.tier) is None:
                raise BadInput(f'--tier: unknown tier "{chosen.tier}"; known tiers: {active.tiers.names()}')
            if what:
                pods = await _of_object(client, active, target.namespace(namespace), what)
            else:
                pods = [each async for each in _chosen(client, active, chosen, namespace)]
            asked = [each for each in pods if has_report_volume(each.spec)]
            if not asked:
                several = f"none of {len(pods)} running pods reports" if pods else "no such pod runs"
                none = "its running pod does not report" if len(pods) == 1 else several
                raise BadInput(f"{none}, so none can be asked to save; see {address('docs/checkpointing.md#reports')}")
            since = datetime.now(UTC).replace(microsecond=0)
            found = [done for each in asked if (done := await _ask(client, each, since)) is not None]
            return await _wait(client, found, since, wait)

    found = asyncio.run(ask())
    write(_answer(found, waited=wait > 0), output)
    if wait and any(each.outcome != SAVED for each in found):
        raise typer.Exit(1)


async def _of_object(client: Client, policy: TierPolicy, namespace: str, what: Sequence[str]) -> list[Pod]:
    """Return the running pods of a workload, or the pod itself if it runs. Raises ApiError, BadInput."""
    tree = await object_named(client, policy.kinds, namespace, *kind_and_name(what))
    document = Document("the cluster", tree)
    trees: Sequence[Tree] | None = [tree]
    if document.group_kind != POD:
        async with asked_cluster(client, policy, namespace) as asked:
            trees = await pods_of_workload(asked, namespace, document.uid)
            if trees is None:
                raise BadInput(" ".join(asked.reader.missing(f"save {' '.join(what)} -n {namespace}")))
    return [view(each, Pod) for each in trees or () if at(each, "status.phase") == "Running"]


async def _chosen(client: Client, policy: TierPolicy, chosen: Trainings, namespace: str | None) -> AsyncIterator[Pod]:
    """Yield the running pods on the node, of the tenant and of the tier, in one namespace or all."""
    homes = None
    if chosen.tenant:
        tenants = by_age(each.tenant for each in await tenant_quotas(client) if each.tenant)
        (tenant,) = tenants_named({each.name: each for each in tenants}, [chosen.tenant])
        if namespace:  # a user who may read only this namespace can ask too
            named = await stored_namespace(client, namespace)
            there = [named] if named else []
        else:
            there = [*await listed_namespaces(client)]
        homes = {each.name for each in there if tenant_among(tenants, each.labels) is tenant}
    on_node = f",spec.nodeName={chosen.node}" if chosen.node else ""
    selected = {"fieldSelector": RUNNING.params["fieldSelector"] + on_node}
    async for raw in listed_objects(client.list_pages(path("v1", "pods", namespace), selected)):
        pod = read(raw, Pod)
        of_tier = policy.tiers.of_class(pod.spec.priority_class_name)
        fits = not chosen.tier or (of_tier is not None and of_tier.name == chosen.tier)
        if fits and pod.spec.node_name and (homes is None or pod.metadata.namespace in homes):
            yield pod


async def _ask(client: Client, pod: Pod, since: datetime) -> SaveAsked | None:
    """Write the annotation; None if the pod is gone. Raises ApiError, and BadInput without the right to patch pods."""
    where = pod.metadata
    body = {"metadata": {"uid": where.uid, "annotations": {SAVE_REQUESTED: since.strftime(RFC_3339)}}}
    try:
        await client.patch(path("v1", "pods", where.namespace, where.name), body)
    except NotFound:
        return None
    except Forbidden as error:
        bound = f"kubectl create rolebinding NAME --clusterrole=edit --user=NAME --namespace={where.namespace}"
        who = f"an admin of namespace {where.namespace} binds it: {bound}"
        raise BadInput(f"{error.said or error}. ClusterRole edit has the right; {who}") from None
    return SaveAsked(where.namespace, where.name, where.uid)


async def _wait(client: Client, asked: list[SaveAsked], since: datetime, seconds: float) -> list[SaveAsked]:
    """Wait up to `seconds` for the event Saved or NotSaved of each pod; return the pods with their outcomes."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not all(each.outcome for each in asked):
        await asyncio.sleep(LOOK_SECONDS)
        events: dict[str, Tree] = {}
        for namespace in sorted({each.namespace for each in asked if not each.outcome}):
            for reason in (NOT_SAVED, SAVED):
                selector = {"fieldSelector": f"involvedObject.kind=Pod,reason={reason}"}
                async for raw in listed_objects(client.list_pages(path("v1", "events", namespace), selector)):
                    event = msgspec.json.decode(raw)
                    last = reported_at(event)
                    if last is not None and last >= since:
                        events[event["involvedObject"].get("uid", "")] = event
        for index, each in enumerate(asked):
            if found := events.get(each.uid):
                asked[index] = replace(each, outcome=found["reason"], message=found["message"])
    return asked


def _answer(found: Sequence[SaveAsked], *, waited: bool) -> Answer:
    none = "no answer" if waited else "asked"
    rows = [(each.namespace, each.name, each.outcome or none, each.message) for each in found]
    notes = []
    if not waited:
        notes = ["Each pod is asked when it next reports, in 5 to 30 s. Its events Saved and NotSaved tell the result."]
    elif any(not each.outcome for each in found):
        notes = ["A pod without an answer may report late, or save longer than you waited; its request stays."]
    return Answer(found, (Table(("Namespace", "Pod", "Outcome", "Message"), rows),), notes)
