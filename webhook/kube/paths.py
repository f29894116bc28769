"""Paths of the Kubernetes API. Names come from tenants, so none may lead to another object than it names.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris
"""

import re

from webhook.objects.refusal import Unreadable

_SEGMENT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")


def path(api_version: str, plural: str, namespace: str | None = None, name: str | None = None) -> str:
    """The path of an object, or of a list where `name` is None; `api_version` as an object says it: "v1", "apps/v1".

    Raises Unreadable where a part is no name: an owner reference may say "../secrets/x".
    """
    group, _, version = api_version.rpartition("/")
    parts = ["apis", _checked(group), _checked(version)] if group else ["api", _checked(version)]
    parts += ["namespaces", _checked(namespace)] if namespace is not None else []
    parts += [plural]
    parts += [_checked(name)] if name is not None else []
    return "/" + "/".join(parts)


def _checked(part: str) -> str:
    if _SEGMENT.fullmatch(part) is None:
        raise Unreadable(f'"{part[:60]}" is not a valid name in the Kubernetes API')
    return part
