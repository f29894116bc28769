"""`gpu-tiers why-pending`: why a pod, or a workload's pods, do not run."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from webhook.cli.cluster.installed import read_active_policy
from webhook.cli.cluster.one_object import (
    AskedCluster,
    NoSuchPod,
    asked_cluster,
    eviction_of,
    kind_and_name,
    kubectl_name,
    object_named,
)
from webhook.cli.cluster.target import Target
from webhook.cli.command import Answer, Form, Table, with_options, write
from webhook.cli.explain import What
from webhook.cli.manifests.documents import BadInput, Document
from webhook.cli.why_pending.reasons import controller_has_tried, pod_waits, why_gone, workload_waits
from webhook.objects.group_kind import POD
from webhook.objects.pods import Named
from webhook.objects.view import view
from webhook.report.waiting import WhyPending


@with_options
def why_pending(
    what: What, output: Form = "table", namespace: str | None = None, policy: Path | None = None, *, target: Target
) -> None:
    """Show why a pod does not run: what it waits for, who uses the GPUs that it needs, and whether they can be evicted.

    Use it to ask why a pod is pending, why a Job has no pods, or who evicted a pod and whether it saved. `explain`
    shows why it has its tier, and `usage` what its whole tenant uses.

    Example: `gpu-tiers why-pending job/train -n team-alpha`

    If the workload's pods were refused, it prints the refusal and when the controller tries again. If the workload was
    applied a moment ago, it waits up to 10 seconds for the result of the first try.
    Exits with 2 if there is no such object, or no answer.
    """

    async def ask() -> WhyPending:
        named, home = kind_and_name(what), target.namespace(namespace)
        async with target.client() as client:
            active = await read_active_policy(client, policy)
            async with asked_cluster(client, active, home) as asked:
                return await _reasons(asked, home, *named)

    write(why_pending_answer(asyncio.run(ask())), output)


OLDER_EVICTIONS = (
    "Events last an hour; an older eviction is on the leader's page and in the log of gpu-tiers (lines `preempted`)"
)


async def _reasons(asked: AskedCluster, namespace: str, kind: str, name: str) -> WhyPending:
    try:
        tree = await object_named(asked.reader.client, asked.policy.kinds, namespace, kind, name)
    except NoSuchPod as problem:
        gone = await why_gone(asked, namespace, name)
        if gone is None:
            raise BadInput(f"{problem}. {OLDER_EVICTIONS}") from None
        return gone
    document = Document("the cluster", tree)
    if document.group_kind == POD:
        found = await pod_waits(asked, document, datetime.now(UTC))
    else:
        await controller_has_tried(asked, document)
        found = await workload_waits(asked, document, datetime.now(UTC))
    last = await eviction_of(asked, document.namespace, view(tree, Named).metadata) if found.waits else None
    evicted = (f"Its last eviction: {last}.",) if last else ()
    return replace(
        found,
        sentences=(*found.sentences, *evicted),
        unread=asked.reader.missing(
            f"why-pending {kubectl_name(document.group_kind, document.name)} -n {document.namespace}"
        ),
    )


def why_pending_answer(found: WhyPending) -> Answer:
    retry = (f"To have it tried at once: {found.retry}",) if found.retry else ()
    return Answer(found, tuple(_tables(found)), retry, found.unread)


def _tables(found: WhyPending) -> Iterator[Table]:
    whole = found.object == f"{POD.kind}/{found.pod}"
    asks = f", {'asks' if whole else 'each pod asks'} for {found.room.asks}" if found.room else ""
    tier = f", {found.tier}" if found.tier else ""
    scheduler = [f"The scheduler says: {found.scheduler}"] if found.scheduler else []
    sentences = [(each,) for each in (*found.sentences, *scheduler)]
    yield Table(("Why",), sentences, f"{found.object} in namespace {found.namespace}{tier}{asks}")
    if found.room and found.room.holders:
        columns = ("Tier", "Tenant", "GPUs", "Pods", "Can be evicted for it")
        rows = [(each.tier, each.tenant, str(each.gpus), each.names, each.why) for each in found.room.holders]
        yield Table(columns, rows, "Who holds the GPUs of the nodes that accept it")
