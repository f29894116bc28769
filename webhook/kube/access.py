"""Asks the API server whose a token is, and what a user may do.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from webhook.kube.client import Client, path
from webhook.objects.user import User
from webhook.objects.view import View, read

_AUTHORIZATION = "authorization.k8s.io/v1"

V = TypeVar("V", bound=View)


class _Access(View, frozen=True):
    allowed: bool = False


async def ask(client: Client, api_version: str, kind: str, spec: Mapping[str, object], shape: type[V]) -> V:
    """Return the status of such a review, which the API server answers and does not store. Raises ApiError."""
    body = {"apiVersion": api_version, "kind": kind, "spec": spec}
    answer = await client.create(path(api_version, f"{kind.lower()}s"), body)
    return read(msgspec.json.encode(answer.get("status") or {}), shape)


async def is_allowed(client: Client, user: User | None, attributes: Mapping[str, object]) -> bool:
    """Tell whether a user may do this; None is the client's own user. Raises ApiError.

    `attributes` are the resourceAttributes or nonResourceAttributes of a SubjectAccessReview.
    """
    if user is None:
        return (await ask(client, _AUTHORIZATION, "SelfSubjectAccessReview", attributes, _Access)).allowed
    groups, extra = map(msgspec.json.decode, (user.groups, user.extra))
    who = {"user": user.username, "uid": user.uid, "groups": groups, "extra": extra}
    return (await ask(client, _AUTHORIZATION, "SubjectAccessReview", {**who, **attributes}, _Access)).allowed


def use_of_class(name: str, namespace: str) -> dict[str, object]:
    """Return the attributes of the verb `use` on a PriorityClass.

    With the namespace, RBAC counts RoleBindings there too, although the class has none.
    """
    attributes = {"group": "scheduling.k8s.io", "resource": "priorityclasses", "verb": "use"}
    return {"resourceAttributes": {**attributes, "name": name, "namespace": namespace}}
