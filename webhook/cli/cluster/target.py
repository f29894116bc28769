"""Finds a command's cluster, as kubectl does, and reports missing rights.

The ClusterRoles of the chart have the rights that commands need: the message names the role.
"""

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from webhook.cli.command import fail
from webhook.cli.manifests.documents import BadInput
from webhook.config.errors import ConfigError
from webhook.kube.client import Client
from webhook.kube.errors import ApiError, Forbidden, Unauthorized
from webhook.kube.kubeconfig import context_namespace
from webhook.objects.data_files import data_file
from webhook.objects.refusal import Refused, Unreadable
from webhook.report.lint.snapshot import Part
from webhook.sentences.sentence import problem_text

_BY_ROLE: Mapping[str, Mapping[Part, str]] = data_file(__name__, "rights.yaml")
RIGHTS: Mapping[Part, str] = {part: right for parts in _BY_ROLE.values() for part, right in parts.items()}
"""The right to read each part of a cluster."""

OF_A_VERDICT: frozenset[Part] = frozenset({"classes", "device_classes", "tenants", "home", "owners", "claims"})
"""The parts that a verdict needs: without one of them, the verdict may differ."""

READER = "gpu-tiers-reader"
ASK_FOR_READER = (
    f"ClusterRole {READER} has what you lack; a cluster admin binds it, or adds the right to a role that you have: "
    f"kubectl create clusterrolebinding {READER}s --clusterrole={READER} --group=GROUP"
)
CLUSTER_READER = "gpu-tiers-cluster-reader"
ASK_FOR_CLUSTER_READER = (
    f"ClusterRole {CLUSTER_READER}, for platform teams, has what you lack; a cluster admin binds it: "
    f"kubectl create clusterrolebinding {CLUSTER_READER}s --clusterrole={CLUSTER_READER} --group=GROUP"
)

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/(?P<namespace>[^/]+))?(?:/(?P<plural>[^/]+).*)?"
)
_READERS = {"tenantquotas", "priorityclasses", "nodes", "deviceclasses", "resourceslices", "devicetaintrules"}
_READERS_AT_HOME = {"configmaps", "leases"}
"""The resources that the reader role may read in the whole cluster, or only in the namespace of gpu-tiers."""
_VIEWED = ("", "apps", "batch", "policy")
"""API groups for which Kubernetes' own `view` has what commands need; other groups' operators add to it."""


def unknown_without(lost: str, *rights: str) -> str:
    """Return the sentence that `lost` is unknown, and which rights are missing."""
    return f"{lost[0].upper()}{lost[1:]} is unknown: you lack the right to {' and to '.join(rights)}."


def how_to_get(refused: Collection[Part]) -> tuple[str, ...]:
    """Return how to bind the roles of the chart with the rights to these parts, which the user may not read."""
    asks = (("reader", ASK_FOR_READER), ("clusterReader", ASK_FOR_CLUSTER_READER))
    return tuple(ask for role, ask in asks if _BY_ROLE[role].keys() & {*refused})


def role_for(refused: Forbidden) -> str:
    """Return the role with the right that the API server refused, and how to bind it."""
    place = _PATH.fullmatch(refused.path)
    group, namespace, plural = (place[each] or "" for each in ("group", "namespace", "plural")) if place else ("",) * 3
    if not namespace or plural in _READERS_AT_HOME:
        return ASK_FOR_READER if plural in _READERS | _READERS_AT_HOME else ASK_FOR_CLUSTER_READER
    role, named = "ClusterRole view has the right", "view"
    if group not in _VIEWED:
        role += " where the operator adds its kinds to it, else a ClusterRole of the operator has it"
        named = "CLUSTERROLE"
    bound = f"kubectl create rolebinding NAME --clusterrole={named} --user=NAME --namespace={namespace}"
    return f"{role}; an admin of namespace {namespace} binds it: {bound}"


T = TypeVar("T")

LOG_IN = "The API server does not accept this login: log in again, or name another kubeconfig or --context."


class Target(msgspec.Struct, frozen=True):
    """The cluster that a command asks: the options --kubeconfig and --context."""

    kubeconfig: Path | None = None
    context: str | None = None

    def namespace(self, asked: str | None) -> str:
        """Return the given namespace, or the one that kubectl would take. Raises Unreachable."""
        return asked or context_namespace(self.kubeconfig, self.context)

    def refuse_if_named(self, why: str) -> None:
        """End the program if a cluster is named although none is asked, as `why` says: "about manifests"."""
        named = [("--kubeconfig", self.kubeconfig), ("--context", self.context)]
        given = " and ".join(option for option, value in named if value)
        if given:
            fail(f"{given}: no cluster is asked {why}; leave out one of them")

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Yield a client. Raises ApiError."""
        async with await Client.connect(self.kubeconfig, self.context) as client:
            yield client


def end_without_answer(error: Exception) -> None:
    """End the program with 2 and the reason why there is no answer. Return if the error is a fault of the program."""
    match error:
        case Unauthorized():
            fail(f"{error}. {LOG_IN}")
        case Forbidden():
            fail(f"{error.said or error}. {role_for(error)}")
        case ApiError() | BadInput() | ConfigError() | Refused() | Unreadable():
            fail(problem_text(error))


def tenants_named(there: Mapping[str, T], names: Sequence[str]) -> list[T]:
    """Return the TenantQuotas of these names; without names, all. End the program if a name is unknown."""
    for name in names:
        if name not in there:
            fail(f'there is no TenantQuota "{name}"; there are {", ".join(there) or "none"}')
    return [there[name] for name in names or there]
