"""`gpu-tiers open-gates`: lets all pods go that wait for quota, where gpu-tiers does not or is to go away."""

import asyncio
import re
from collections.abc import Collection
from typing import Annotated

import typer

from webhook.cli.cluster.target import ContextOption, KubeconfigOption, Target, answered
from webhook.cli.output import fail
from webhook.cluster.listed import listed_trees
from webhook.kube.client import Client
from webhook.kube.errors import Failed, NotFound
from webhook.kube.paths import path
from webhook.objects.pods import QUOTA_GATE, WITHOUT_QUOTA_GATE
from webhook.objects.view import Tree

AT_ONCE = 8
"""Gates that are opened at a time: more would keep the API server busy while schedulers need it."""
GUARDED = (
    "The policy {policy} keeps the gates shut to everybody but gpu-tiers: kubectl delete "
    "validatingadmissionpolicybinding {binding}, and ask again in some seconds. The next helm upgrade makes it anew"
)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request: spec.schedulingGates")


def open_gates(
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Namespace; without it all of them.")
    ] = None,
    yes: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--yes", help="Open them; without it they are only counted.")
    ] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Let all pods go that wait for quota (onExceed: Hold), whatever the quotas say: break-glass, or an uninstall.

    Quotas may be overdrawn by them; nothing is evicted for that. First delete the policy that keeps their gates shut:
    docs/break-glass.md. Exits with 2 where a gate stays shut.
    """
    target = Target(kubeconfig, context)
    if not yes:
        count = answered(lambda: _count(target, namespace))
        told = f"{_pods(count)} behind the gate {QUOTA_GATE}"
        typer.echo(f"{told}. To let them go, write --yes; quotas may be overdrawn by them.")
        return
    opened, problems = answered(lambda: _open_all(target, namespace))
    typer.echo(
        f"Opened: {opened} of {opened + len(problems)} gates. Quotas may be overdrawn by them: gpu-tiers usage tells."
    )
    if problems:
        fail(f"{len(problems)} stay shut. {_why(problems[0])}.")


def _why(said: str) -> str:
    guard = _POLICY.search(said)
    return GUARDED.format(policy=guard[1], binding=guard[2]) if guard else said.removesuffix(".")


def _pods(count: int) -> str:
    return "1 pod waits" if count == 1 else f"{count} pods wait"


async def _count(target: Target, namespace: str | None) -> int:
    async with target.client() as client:
        return len(await _held(client, namespace))


async def _open_all(target: Target, namespace: str | None) -> tuple[int, list[str]]:
    """How many were opened, and why others were not."""
    async with target.client() as client:
        slots = asyncio.Semaphore(AT_ONCE)
        found = await asyncio.gather(*(_open(client, pod, slots) for pod in await _held(client, namespace)))
    problems = [each for each in found if each]
    return len(found) - len(problems), problems


async def _held(client: Client, namespace: str | None) -> list[Tree]:
    """The pods that wait, those of the highest priority first: what comes first is scheduled first."""
    found = await listed_trees(client, path("v1", "pods", namespace), {"fieldSelector": "spec.nodeName="})
    held = [each for each in found if QUOTA_GATE in _gates(each)]
    return sorted(held, key=lambda each: (-each["spec"].get("priority", 0), each["metadata"]["creationTimestamp"]))


async def _open(client: Client, pod: Tree, slots: asyncio.Semaphore) -> str:
    """Open one; why it stays shut, or ""."""
    where = path("v1", "pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
    async with slots:
        try:
            await client.patch(where, {"spec": WITHOUT_QUOTA_GATE}, strategic=True)
        except NotFound:
            return ""
        except Failed as error:
            return error.said or str(error)
    return ""


def _gates(pod: Tree) -> Collection[str]:
    return [each["name"] for each in pod["spec"].get("schedulingGates", ())]
