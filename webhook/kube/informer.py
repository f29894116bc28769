"""A Reflector and the Store that it fills: all objects of one kind by name, reduced to what is needed of them."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from webhook.kube.client import Client
from webhook.kube.reflector import Reflector, Source

T = TypeVar("T")


class Store(Generic[T]):
    """Objects by name, as they were seen last. `changed` is called after each change."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.objects: dict[str, T] = {}
        self._changed = changed

    def get(self, name: str) -> T | None:
        """The object of that name, None where there is none."""
        return self.objects.get(name)

    def update(self, name: str, found: T | None) -> None:
        """An object is as found; None: it is gone."""
        if found is None:
            self.objects.pop(name, None)
        else:
            self.objects[name] = self.kept(name, found)
        self._changed()

    def replace(self, found: Mapping[str, T]) -> None:
        """These objects exist and no others."""
        self.objects = {name: self.kept(name, value) for name, value in found.items()}
        self._changed()

    def kept(self, name: str, found: T) -> T:  # noqa: ARG002 - for stores that need it
        """What is kept of an object; a store may combine it with what it kept before."""
        return found


class Informer(Generic[T]):
    """Keeps a store as a source is: `project` makes of an object's bytes what the store gets."""

    def __init__(self, client: Client, source: Source, project: Callable[[msgspec.Raw], T], store: Store[T]) -> None:
        async def projected(raw: msgspec.Raw) -> T:
            return project(raw)

        self.store = store
        self.reflector = Reflector(client, source, projected, store.update, store.replace)
