"""The pod or workload that a person names as they would name it to kubectl."""

from typing import Any

from webhook.cli.documents import BadInput
from webhook.kube.client import Client
from webhook.kube.errors import NotFound
from webhook.kube.paths import path
from webhook.kube.resources import ServedResource, resources_of
from webhook.objects.group_kind import POD, GroupKind
from webhook.policy.workloads.kinds import KindTable

Tree = dict[str, Any]

WHAT = "NAME or pod/NAME, job/NAME, deploy/NAME, pytorchjob.kubeflow.org/NAME, as kubectl takes them"

_POD = ServedResource("v1", POD.kind, "pods", frozenset(("pods", "pod", "po")))


async def object_named(client: Client, kinds: KindTable, namespace: str, what: str) -> Tree:
    """The object, with its apiVersion and kind. Raises BadInput where there is none, or ApiError."""
    word, slash, name = what.partition("/")
    if not slash:
        word, name = "pod", what
    if not name or "/" in name:
        raise BadInput(f'"{what}" names no object; write {WHAT}')
    resource = _POD if _POD.is_called(word) else await _workload(client, kinds, word)
    try:
        found = await client.get(path(resource.api_version, resource.plural, namespace, name))
    except NotFound:
        hint = "" if slash else ". For a workload write its kind too, such as job/" + name
        raise BadInput(f'there is no {resource.kind} "{name}" in namespace {namespace}{hint}') from None
    return {"apiVersion": resource.api_version, "kind": resource.kind} | found


async def _workload(client: Client, kinds: KindTable, word: str) -> ServedResource:
    served = await resources_of(client, {kind.group for kind in kinds.by_kind})
    known = [each for each in served if GroupKind(each.group, each.kind) in kinds.by_kind]
    named = next((each for each in known if each.is_called(word)), None)
    if named is not None:
        return named
    if any(each.is_called(word) for each in served):
        raise BadInput(f'"{word}" makes no pods that gpu-tiers knows of; ask about a pod, or about what makes it')
    raise BadInput(
        f'this cluster serves no "{word}" that makes pods; it serves {", ".join(sorted({each.kind for each in known}))}'
    )
