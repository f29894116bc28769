"""How a command finds its cluster, as kubectl does, and how it says that it can't."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from webhook.cli.cluster.rights import role_for
from webhook.cli.manifests.documents import BadInput
from webhook.cli.output import fail
from webhook.config.errors import ConfigError
from webhook.kube.client import Client
from webhook.kube.errors import ApiError, Forbidden, Unauthorized
from webhook.kube.kubeconfig import context_namespace
from webhook.objects.refusal import Refused, Unreadable
from webhook.sentences.sentence import told

T = TypeVar("T")

LOG_IN = "The API server does not accept this login: log in again, or name another kubeconfig or --context."

KubeconfigOption = Annotated[
    Path | None, typer.Option("--kubeconfig", help="Kubeconfig; without it $KUBECONFIG, else ~/.kube/config.")
]
ContextOption = Annotated[
    str | None, typer.Option("--context", help="Context of the kubeconfig; without it the current one.")
]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace; without it the context's, else default.")
]
AtRiskOption = Annotated[
    bool, typer.Option("--at-risk", help="Read all pods too, and show what to evict training pods now would lose.")
]


class Target(msgspec.Struct, frozen=True):
    """Which cluster a command asks."""

    kubeconfig: Path | None = None
    context: str | None = None

    def namespace(self, asked: str | None) -> str:
        """The namespace that was asked for, else the one that kubectl would take. Raises Unreachable."""
        return asked or context_namespace(self.kubeconfig, self.context)

    def refuse_if_named(self, why: str) -> None:
        """End the program if a cluster is named where none is asked, as `why` says: "about manifests"."""
        named = [("--kubeconfig", self.kubeconfig), ("--context", self.context)]
        given = " and ".join(option for option, value in named if value)
        if given:
            fail(f"{given}: no cluster is asked {why}; leave out the one or the other")

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Raises ApiError."""
        async with await Client.connect(self.kubeconfig, self.context) as client:
            yield client


def answered(ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What comes of a question to a cluster; where it can't be asked, the program ends with 2 and the reason."""
    try:
        return asyncio.run(ask())
    except Unauthorized as error:
        fail(f"{error}. {LOG_IN}")
    except Forbidden as error:
        fail(f"{error.said or error}. {role_for(error)}")
    except (ApiError, BadInput, ConfigError, Refused, Unreadable) as error:
        fail(told(error))


def tenants_named(there: Mapping[str, T], names: Sequence[str]) -> list[T]:
    """What there is of these TenantQuotas; of all without names. The program ends where there is none of a name."""
    for name in names:
        if name not in there:
            fail(f'there is no TenantQuota "{name}"; there are {", ".join(there) or "none"}')
    return [there[name] for name in names or there]
