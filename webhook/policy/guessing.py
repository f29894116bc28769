"""Guesses what a pod does from what it runs, is packed in and is called; always called a guess, and never proof."""

from collections.abc import Iterator, Sequence

from webhook.policy.evidence import Evidence, Trust
from webhook.policy.facts import Workload
from webhook.policy.guesses import GUESSES, LONGEST
from webhook.policy.kinds.row import Source
from webhook.policy.objects import Pod


def guess(pod: Pod, owners: Sequence[Workload], sources: Sequence[Source]) -> Evidence | None:
    """The first pattern that matches, source by source."""
    for source in sources:
        texts = list(_TEXTS[source](pod, owners))
        for pattern, kind in GUESSES[source]:
            match = next(filter(None, (pattern.search(text[:LONGEST]) for text in texts)), None)
            if match:
                return Evidence(kind, f'its {source} ("{match.group(0).strip(" -/:")}")', Trust.GUESS)
    return None


def _commands(pod: Pod, _: Sequence[Workload]) -> Iterator[str]:
    """Commands with their arguments; a shell's script is one of these, and is searched like any other."""
    for container in pod.spec.containers:
        yield " ".join((*container.command, *container.args))


def _images(pod: Pod, _: Sequence[Workload]) -> Iterator[str]:
    for container in pod.spec.containers:
        yield container.image.partition("@")[0]


def _names(pod: Pod, owners: Sequence[Workload]) -> Iterator[str]:
    yield from (owner.name for owner in owners)
    yield pod.metadata.generate_name or pod.metadata.name  # the same before and after a name was generated
    yield from (container.name for container in pod.spec.containers)


def _ports(pod: Pod, _: Sequence[Workload]) -> Iterator[str]:
    for container in pod.spec.containers:
        yield from (f"{port.name}:{port.container_port}" for port in container.ports)


_TEXTS = {"command": _commands, "image": _images, "name": _names, "port": _ports}
