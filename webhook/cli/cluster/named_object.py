"""The pod or workload that a person names as they would name it to kubectl."""

import difflib
from collections.abc import Sequence

from webhook.cli.manifests.documents import BadInput
from webhook.kube.client import Client, path
from webhook.kube.discovery import ServedResource, resources_of
from webhook.kube.errors import Forbidden, NotFound
from webhook.objects.group_kind import POD, GroupKind
from webhook.objects.view import Tree
from webhook.policy.workloads.kind_table import KindTable

WHAT = "NAME of a pod, or KIND/NAME or KIND NAME as kubectl takes them: job/NAME, deploy/NAME, pytorchjobs NAME"

_POD = ServedResource("v1", POD.kind, "pods", frozenset(("pods", "pod", "po")))


def kind_and_name(words: Sequence[str]) -> tuple[str, str]:
    """What a person means by `train`, `job/train` or `job train`; the kind is "" where none is written.

    Raises BadInput.
    """
    parts = [part for word in words for part in word.split("/")]
    if len(parts) > 2 or not all(parts):  # noqa: PLR2004 - a kind and a name
        raise BadInput(f'"{" ".join(words)}" does not name one object; write {WHAT}')
    return (parts[0], parts[1]) if len(parts) > 1 else ("", parts[0])


async def object_named(client: Client, kinds: KindTable, namespace: str, kind: str, name: str) -> Tree:
    """The object, with its apiVersion and kind. Raises BadInput where there is none, or ApiError."""
    word = kind or "pod"
    resource = _POD if _POD.is_called(word) else await _workload(client, kinds, word, name)
    try:
        found = await client.get(path(resource.api_version, resource.plural, namespace, name))
    except NotFound:
        if not await _is_there(client, namespace):
            raise BadInput(f"there is no namespace {namespace}") from None
        hint = "" if kind else f". For a workload write its kind too, such as job/{name}"
        raise BadInput(f'there is no {resource.kind} "{name}" in namespace {namespace}{hint}') from None
    return {"apiVersion": resource.api_version, "kind": resource.kind} | found


async def _is_there(client: Client, namespace: str) -> bool:
    """Whether there is such a namespace; where nobody may look, it is taken to be there."""
    try:
        await client.get(path("v1", "namespaces", name=namespace))
    except NotFound:
        return False
    except Forbidden:
        return True
    return True


async def _workload(client: Client, kinds: KindTable, word: str, name: str) -> ServedResource:
    served = await resources_of(client, {kind.group for kind in kinds.by_kind})
    known = [each for each in served if GroupKind(each.group, each.kind) in kinds.by_kind]
    named = next((each for each in known if each.is_called(word)), None)
    if named is not None:
        return named
    if any(each.is_called(word) for each in served):
        raise BadInput(f'"{word}" makes no pods that gpu-tiers knows of; ask about a pod, or about what makes it')
    raise BadInput(f'this cluster serves no "{word}" that makes pods; {meant([_POD, *known], word, name)}')


def meant(known: Sequence[ServedResource], word: str, name: str) -> str:
    """The kind that was perhaps meant; where none is like it, all of them."""
    if any(each.is_called(name) for each in known):
        return f"write the kind first: {name} {word}"
    spellings = sorted({spelling for each in known for spelling in (each.kind.lower(), each.plural)})
    near = difflib.get_close_matches(word.lower(), spellings, n=1)
    if near:
        return f"did you mean {near[0]}/{name}?"
    return f"it serves {', '.join(sorted({each.kind for each in known}))}"
