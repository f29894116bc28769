"""The user's kubeconfig as kubectl reads it: its files, its context, and its problems."""

import os
from collections import ChainMap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import yaml

from webhook.kube.errors import Unreachable

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_NO_KUBECONFIG = (AttributeError, KeyError, TypeError, ValueError)
"""The errors of reading YAML that is no kubeconfig, such as one word."""

_Entry = Mapping[str, Any]
_Entries = Mapping[str, _Entry]


class _Content(msgspec.Struct, frozen=True):
    """The content of one file."""

    clusters: dict[str, _Entry]
    users: dict[str, _Entry]
    contexts: dict[str, _Entry]
    current: str


class Kubeconfig(msgspec.Struct, frozen=True):
    """The selected context with its user. `files` are the files that were read, separated as in $KUBECONFIG."""

    files: str
    context: str
    namespace: str
    user: Mapping[str, Any]

    def acting_as(self) -> Iterator[tuple[str, str]]:
        """Yield the headers by which a user acts as another, which the client library leaves out.

        https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
        """
        user = self.user
        if user.get("as"):
            yield "Impersonate-User", str(user["as"])
        if user.get("as-uid"):
            yield "Impersonate-Uid", str(user["as-uid"])
        yield from (("Impersonate-Group", str(group)) for group in user.get("as-groups") or ())
        for key, values in (user.get("as-user-extra") or {}).items():
            yield from ((f"Impersonate-Extra-{quote(str(key), safe='')}", str(value)) for value in values)


def in_cluster(kubeconfig: Path | None, context: str | None) -> bool:
    """Tell whether to use the pod's ServiceAccount: in a pod, if neither a kubeconfig nor a context is named."""
    return kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ


def context_namespace(kubeconfig: Path | None = None, context: str | None = None) -> str:
    """Return the namespace that kubectl would use with this kubeconfig and context. Raises Unreachable."""
    if not in_cluster(kubeconfig, context):
        return read_kubeconfig(kubeconfig, context).namespace
    return _OWN_NAMESPACE.read_text(encoding="utf-8").strip() if _OWN_NAMESPACE.is_file() else "default"


def read_kubeconfig(kubeconfig: Path | None, context: str | None) -> Kubeconfig:
    """Read the file, or $KUBECONFIG, or ~/.kube/config. Raises Unreachable with the problem."""
    named = os.environ.get("KUBECONFIG") or "~/.kube/config"  # an empty one is none, as for kubectl
    places = [kubeconfig] if kubeconfig else [Path(each).expanduser() for each in named.split(os.pathsep) if each]
    contents = {str(place): content for place in places if (content := _content(place))}
    if not contents:
        instead = "" if kubeconfig else "; name one with --kubeconfig, or in $KUBECONFIG"
        empty = any(place.is_file() for place in places)
        files = ", ".join(map(str, places))
        raise unusable(f"{f'{files} is empty' if empty else f'there is no kubeconfig at {files}'}{instead}")
    first = next((each.current for each in contents.values() if each.current), "")
    clusters: _Entries = ChainMap(*(each.clusters for each in contents.values()))
    users: _Entries = ChainMap(*(each.users for each in contents.values()))
    contexts: _Entries = ChainMap(*(each.contexts for each in contents.values()))
    name = first if context is None else context
    if name not in contexts:
        asked = f'no context "{name}"' if name else "no current context"
        raise unusable(f"the kubeconfig has {asked}; it has {', '.join(contexts) or 'none'}")
    found = contexts[name]
    _require_whole(name, clusters.get(str(found.get("cluster"))), found, users)
    namespace = str(found.get("namespace") or "default")
    return Kubeconfig(os.pathsep.join(contents), name, namespace, users.get(str(found.get("user")), {}))


def _require_whole(name: str, cluster: _Entry | None, context: _Entry, users: _Entries) -> None:
    """Require a complete context, or the client library would ask this machine, or fail. Raises Unreachable."""
    user = context.get("user")
    if cluster is None:
        raise unusable(f'context "{name}" names the cluster "{context.get("cluster")}", which the kubeconfig lacks')
    if not cluster.get("server"):
        raise unusable(f'the cluster "{context.get("cluster")}" of the kubeconfig has no server')
    if user and user not in users:
        raise unusable(f'context "{name}" names the user "{user}", which the kubeconfig lacks')
    if not user and str(cluster["server"]).startswith("https"):
        raise unusable(f'context "{name}" of the kubeconfig names no user')


def unusable(problem: str) -> Unreachable:
    """Return the error for a problem of a kubeconfig."""
    return Unreachable(f"can't find the API server: {problem}")


def _content(place: Path) -> _Content | None:
    """Return the content of a file; None if it is empty, or does not exist."""
    try:
        found = yaml.safe_load(place.read_text(encoding="utf-8")) if place.exists() else None
        if not found:
            return None
        clusters, users, contexts = (_entries(found, key) for key in ("cluster", "user", "context"))
        return _Content(clusters, users, contexts, str(found.get("current-context") or ""))
    except OSError as error:
        raise unusable(f"{place}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise unusable(f"{place} is no kubeconfig: it is no text in UTF-8") from error
    except yaml.YAMLError as error:
        raise unusable(f"{place}: {' '.join(str(error).split())}") from error
    except _NO_KUBECONFIG as error:
        raise unusable(f"{place} is no kubeconfig: it should have clusters, users and contexts") from error


def _entries(found: Mapping[str, Any], key: str) -> dict[str, _Entry]:
    return {each["name"]: dict(each.get(key) or {}) for each in found.get(f"{key}s") or ()}
