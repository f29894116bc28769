"""Follows the labels of nodes by which GPUs of one model are told from others. Of a node nothing else is read."""

from collections.abc import Callable, Collection, Mapping

import msgspec

from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.reflector import Reflector, Source
from webhook.kube.reflectors import Reflectors
from webhook.objects.pods import Named
from webhook.objects.view import read

Labels = Mapping[str, str]

_NODES = Source(path("v1", "nodes"), metadata_only=True)


class NodeInformer(Reflectors):
    """Labels by node. Nothing is watched until `follow` names a label."""

    def __init__(self, client: Client) -> None:
        self._keys: frozenset[str] = frozenset()
        self._labels: dict[str, Labels] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._reflector: Reflector[Labels] = Reflector(client, _NODES, self._projected, self._update, self._replace)
        super().__init__(self._reflector)

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call a function with the name of each node whose labels have changed."""
        self._listeners.append(listener)

    def labels(self, name: str) -> Labels | None:
        """A node's labels of the keys that are followed; None of a node that is not known."""
        return self._labels.get(name)

    def follow(self, keys: Collection[str]) -> None:
        """Watch the labels of these keys; without a key, watch nothing."""
        before, self._keys = self._keys, frozenset(keys)
        if self._keys == before:
            return
        self._reflector.relist()
        if not before:
            self.start()
        elif not self._keys:
            for task in self._tasks:
                task.cancel()
            self._replace({})

    def problems(self) -> list[str]:
        """What can't be watched now, a sentence each."""
        return super().problems() if self._keys else []

    @property
    def silent_seconds(self) -> float:
        """How long they have said nothing; 0 where nothing is watched."""
        return super().silent_seconds if self._keys else 0.0

    async def _projected(self, raw: msgspec.Raw) -> Labels:
        labels = read(raw, Named).metadata.labels
        return {key: labels[key] for key in self._keys & labels.keys()}

    def _update(self, name: str, found: Labels | None) -> None:
        if found != self._labels.get(name):
            self._keep(name, found)
            for listener in self._listeners:
                listener(name)

    def _keep(self, name: str, found: Labels | None) -> None:
        if found is None:
            del self._labels[name]
        else:
            self._labels[name] = found

    def _replace(self, found: Mapping[str, Labels]) -> None:
        for name in self._labels.keys() | found.keys():
            self._update(name, found.get(name))
