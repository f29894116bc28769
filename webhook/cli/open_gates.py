"""`gpu-tiers open-gates`: starts all queued pods, if gpu-tiers does not work or is to be removed."""

import asyncio
import re
import time

import msgspec
import typer

from webhook.cli.cluster.target import Target
from webhook.cli.command import fail, with_options
from webhook.controllers.reserved_nodes import ReservedNodes
from webhook.kube.client import Client, listed_objects, path
from webhook.kube.errors import Failed, NotFound
from webhook.objects.pods import QUOTA_GATE, WITHOUT_QUOTA_GATE
from webhook.objects.view import Tree
from webhook.report.waiting import tells_of_an_outage

AT_ONCE = 8
"""Gates that are opened at a time. More would keep the API server busy while schedulers need it."""
PAUSE_SECONDS = 1.0
"""The seconds between two attempts."""
GUARDED = (
    "The policy {policy} keeps the gates shut to everybody but gpu-tiers. Let the policy only record who opens them, "
    "and run this again in some seconds: kubectl patch validatingadmissionpolicybinding {binding} --type=merge "
    """-p '{{"spec":{{"validationActions":["Audit"]}}}}'. The next helm upgrade shuts them again"""
)
END_ENFORCEMENT = "gpu-tiers does not answer, so end enforcement first, and ask again: docs/break-glass.md"
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request: spec.schedulingGates")


@with_options
def open_gates(
    *, namespace: str | None = None, yes: bool = False, nodes: bool = False, wait_seconds: float = 0, target: Target
) -> None:
    """Let all queued pods (onExceed: Hold) start, whatever the quotas say: for an emergency, or an uninstall.

    Use it when gpu-tiers can't open the gates itself.

    Example: `gpu-tiers open-gates --yes`

    These pods may exceed the quotas; nothing is evicted for that. First weaken the admission policy that keeps their
    gates shut: docs/break-glass.md. Exits with 2 if a gate stays shut.
    """
    asyncio.run(_asked(target, namespace, yes=yes, nodes=nodes, wait_seconds=wait_seconds))


async def _asked(target: Target, namespace: str | None, *, yes: bool, nodes: bool, wait_seconds: float) -> None:
    async with target.client() as client:
        if not yes:
            count = len(await _gated(client, namespace))
            pods = "1 pod waits" if count == 1 else f"{count} pods wait"
            typer.echo(f"{pods} behind the gate {QUOTA_GATE}. To start them, add --yes; this may overdraw quotas.")
            return
        opened, problems = await _open_all(client, namespace, wait_seconds)
        if nodes:
            cleared = await ReservedNodes(client, lambda _: None).clear_all()
            typer.echo(f"Reservations ended: {cleared}.")
    overdrawn = " Quotas may be overdrawn." if opened else ""
    typer.echo(f"Opened: {opened} of {opened + len(problems)} gates.{overdrawn}")
    if problems:
        guard = _POLICY.search(problems[0])
        why = GUARDED.format(policy=guard[1], binding=guard[2]) if guard else problems[0].removesuffix(".")
        if tells_of_an_outage(problems[0]):
            why += f". {END_ENFORCEMENT}"
        fail(f"{len(problems)} stay shut. {why}.")


async def _open_all(client: Client, namespace: str | None, wait_seconds: float) -> tuple[int, list[str]]:
    """Return how many gates were opened, and why the others were not.

    Refused gates are tried again until none opens for `wait_seconds`, because an API server applies a policy for some
    seconds after its deletion.
    """
    opened, end, slots = 0, time.monotonic() + wait_seconds, asyncio.Semaphore(AT_ONCE)
    while gated := await _gated(client, namespace):
        said = await asyncio.gather(*(_open(client, pod, slots) for pod in gated))
        problems = [each for each in said if each]
        opened += len(gated) - len(problems)
        if len(problems) < len(gated):
            end = time.monotonic() + wait_seconds
        if time.monotonic() >= end:
            return opened, problems
        await asyncio.sleep(PAUSE_SECONDS)
    return opened, []


async def _gated(client: Client, namespace: str | None) -> list[str]:
    """Return the paths of the gated pods, the highest priority first and then the oldest, as the scheduler takes them.

    Only paths are stored, because there may be thousands, and an uninstall has as little memory as the webhook.
    """
    where, gated = path("v1", "pods", namespace), []
    async for raw in listed_objects(client.list_pages(where, {"fieldSelector": "spec.nodeName="})):
        pod: Tree = msgspec.json.decode(raw)
        if QUOTA_GATE in [each["name"] for each in pod["spec"].get("schedulingGates", ())]:
            metadata = pod["metadata"]
            itself = path("v1", "pods", metadata["namespace"], metadata["name"])
            gated.append((-pod["spec"].get("priority", 0), metadata["creationTimestamp"], itself))
    return [itself for *_, itself in sorted(gated)]


async def _open(client: Client, pod: str, slots: asyncio.Semaphore) -> str:
    """Open one gate. Return why it stays shut, "" if it is open or the pod is gone."""
    async with slots:
        try:
            await client.patch(pod, {"spec": WITHOUT_QUOTA_GATE}, strategic=True)
        except NotFound:
            return ""
        except Failed as error:
            return error.said or str(error)
    return ""
