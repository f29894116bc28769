"""What a workload is, by the evidence in the order of its trust; never which tier that earns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webhook.policy.facts import Workload
from webhook.policy.guesses import GUESSES, LONGEST
from webhook.policy.kinds import KINDS, ROW_OF
from webhook.policy.objects import Pod
from webhook.policy.tier_policy import WorkloadType


def _telling_labels() -> Iterator[tuple[str, str | None, WorkloadType]]:
    """Labels that only pods of one workload type bear: ray.io/cluster stands on all that Ray runs."""
    for row in KINDS:
        for label in row.labels.items():
            if row.type and all(other.type == row.type for other in KINDS if label in other.labels.items()):
                yield *label, row.type


_TELLING_LABELS = tuple(dict.fromkeys(_telling_labels()))


@dataclass(frozen=True, slots=True)
class Evidence:
    """A workload type and what made us say so.

    `usual` marks what the kind is mostly used for, and proves nothing. `guess` marks a name, an image or a command:
    weak evidence.
    """

    type: WorkloadType
    text: str
    guess: bool = False
    usual: bool = False

    @property
    def proof(self) -> bool:
        """Whether it leaves no doubt, so that a claim against it may be refused."""
        return not (self.guess or self.usual)

    def __str__(self) -> str:
        return f"{self.type}, {'a guess from' if self.guess else 'by'} {self.text}"


def workload_type(pod: Pod, owners: Sequence[Workload]) -> Evidence | None:
    """The workload type with its evidence; None where nothing tells. Owners are the nearest first."""
    return _by_kind(owners) or _by_label(pod) or _by_usual_use(owners) or _by_guess(pod, owners)


def _by_kind(owners: Sequence[Workload]) -> Evidence | None:
    for owner in owners:
        row = ROW_OF.get(owner.kind)
        if row is not None and row.type is not None:
            return Evidence(row.type, f"its kind, {owner}")
    return None


def _by_label(pod: Pod) -> Evidence | None:
    labels = pod.metadata.labels
    for key, value, kind in _TELLING_LABELS:
        if key in labels and value in (None, labels[key]):
            return Evidence(kind, f"its label {key}")
    return None


def _by_usual_use(owners: Sequence[Workload]) -> Evidence | None:
    """The outermost owner tells: a JobSet says more than the Jobs it is made of."""
    for owner in reversed(owners):
        row = ROW_OF.get(owner.kind)
        if row is not None and row.usual is not None:
            return Evidence(row.usual, f"the usual use of its kind, {owner}", usual=True)
    return None


def _by_guess(pod: Pod, owners: Sequence[Workload]) -> Evidence | None:
    texts = list(_texts(pod, owners))
    for source, pattern, kind in GUESSES:
        for where, text in texts:
            match = pattern.search(text[:LONGEST]) if where == source else None
            if match:
                return Evidence(kind, f'its {source} ("{match.group(0).strip("-")}")', guess=True)
    return None


def _texts(pod: Pod, owners: Sequence[Workload]) -> Iterator[tuple[str, str]]:
    for container in pod.spec.containers:
        yield "command", " ".join((*container.command, *container.args))
        yield "image", container.image.rpartition("@")[0] or container.image
        yield "name", container.name
    yield from (("name", owner.name) for owner in owners)
    yield "name", pod.metadata.generate_name or pod.metadata.name  # the same before and after a name was generated
