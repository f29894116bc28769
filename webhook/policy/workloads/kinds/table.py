"""The table as a value: a row by its kind, and what the labels of all rows tell together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import OwnerReference
from webhook.policy.workloads.kinds.labels import LAUNCHER_LABELS, WELL_KNOWN_LABELS
from webhook.policy.workloads.kinds.row import KindRow, Source
from webhook.policy.workloads.workload_types import WorkloadType


class TellingLabel(NamedTuple):
    """A label that only pods of one workload type have; `value` None where any value tells, `unless` as in a row."""

    key: str
    value: str | None
    type: WorkloadType
    unless: tuple[Source, ...]


@dataclass(frozen=True, eq=False)
class KindTable:
    """The kinds that a policy knows. Two tables are never equal: what was read by one may not serve another."""

    rows: tuple[KindRow, ...]

    def with_rows(self, rows: tuple[KindRow, ...]) -> "KindTable":
        """This table with further rows; one of a kind that it knows takes the place of its own, inside wrappers too."""
        if not rows:
            return self
        known = tuple({**self.by_kind, **{row.group_kind: row for row in rows}}.values())
        inside = tuple(row for row in known if not row.wraps)
        return KindTable(tuple(replace(row, wrapped=inside) if row.wraps else row for row in known))

    @cached_property
    def by_kind(self) -> Mapping[GroupKind, KindRow]:
        """What is known of each kind."""
        return {row.group_kind: row for row in self.rows}

    def is_gang(self, owner: OwnerReference | None) -> bool:
        """Whether an owner, if there is one, is of a kind whose pods are charged as a whole; it is not looked at."""
        row = self.by_kind.get(GroupKind(owner.group, owner.kind)) if owner else None
        return row is not None and row.gang

    @cached_property
    def by_scaled(self) -> Mapping[tuple[str, str], KindRow]:
        """The kinds whose scale subresource is reviewed, by API group and plural."""
        return {(row.group, row.plural): row for row in self.rows if row.scale}

    @cached_property
    def gang_labels(self) -> frozenset[str]:
        """Labels of members of gangs: a Ray head or an MPI launcher asks for no GPU and shares the gang's tier."""
        return frozenset(row.gang_label for row in self.rows if row.gang_label)

    @cached_property
    def telling_labels(self) -> Mapping[str, tuple[tuple[int, TellingLabel], ...]]:
        """Labels that tell a type without a look at the owners, each with its rank, by their keys.

        ray.io/cluster is not among them: everything that Ray runs has it.
        """
        ranked = list(enumerate(dict.fromkeys((*self._labels_of_one_type(), *_WELL_KNOWN))))
        return {key: tuple(pair for pair in ranked if pair[1].key == key) for key in {each.key for _, each in ranked}}

    def _labels_of_one_type(self) -> Iterator[TellingLabel]:
        for row in self.rows:
            for label in row.labels.items():
                if row.type and all(other.type == row.type for other in self.rows if label in other.labels.items()):
                    yield TellingLabel(*label, row.type, row.unless)

    @cached_property
    def usual_labels(self) -> Mapping[str, WorkloadType]:
        """Labels of general launchers, each with its usual use, for pods whose owners can't be seen."""
        return {**dict(self._labels_of_one_use()), **{key: told for key, told, _ in LAUNCHER_LABELS}}

    def _labels_of_one_use(self) -> Iterator[tuple[str, WorkloadType]]:
        for row in self.rows:
            for label in row.labels.items():
                uses = {other.type or other.usual for other in self.rows if label in other.labels.items()}
                if row.usual and not row.type and uses == {row.usual} and label[1] is None:
                    yield label[0], row.usual


_WELL_KNOWN = tuple(TellingLabel(key, value, told, ()) for key, value, told, _ in WELL_KNOWN_LABELS)
