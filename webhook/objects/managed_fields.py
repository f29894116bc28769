"""Reads who set a field of an object, as metadata.managedFields says it.

The API server writes managedFields before it asks webhooks. So a field that another webhook fills in has no manager.
"""

from typing import Any

from webhook.objects.view import View, at


class ManagedFields(View, frozen=True):
    """Who set which fields: an Apply names what a person wrote, an Update also what the API server filled in."""

    manager: str = ""
    operation: str = ""
    fields_v1: Any = None


def is_filled_in(tree: object, *field: str) -> bool:
    """Tell whether another webhook filled in a field that the object has: nobody sent it.

    An object without managedFields has not been through an API server: its author wrote all of it.
    """
    entries = at(tree, "metadata.managedFields")
    return isinstance(entries, list) and bool(entries) and not any(_manages(each, field) for each in entries)


def _manages(entry: object, field: tuple[str, ...]) -> bool:
    found = entry.get("fieldsV1") if isinstance(entry, dict) else None
    for step in field:
        found = found.get(f"f:{step}") if isinstance(found, dict) else None
    return found is not None
