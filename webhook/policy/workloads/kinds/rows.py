"""Makes rows of the table of kinds from data: from the files in this folder, and from `kinds` in a policy file.

An entry has the fields of KindRow in camelCase. A template's `path` is whole there: spec.workers.*.template. The object
that holds it is at `holder`, else at the longest path that leads to both the template and its number at `replicas`.
Counts and what else an operator does are functions, named in `pods`, `times`, `left`, `least`, `made` and `merged`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec
from msgspec import structs

from webhook.objects.view import steps
from webhook.policy.workloads import spark, training_runtime
from webhook.policy.workloads.kinds.table import KindRow, MakesPod
from webhook.policy.workloads.pod_counts import GROUP_COUNTS, POD_COUNTS, GroupCount, PodCount, counted_at

_MAKES_PODS: Mapping[str, MakesPod] = {
    "spark_driver": spark.driver_pod,
    "spark_executor": spark.executor_pod,
    "node_alone": training_runtime.node_alone,
    "with_runtime": training_runtime.with_runtime,
}
_NAMED: Mapping[Any, Mapping[str, Callable[..., Any]]] = {
    PodCount: POD_COUNTS | {"spark_executors": spark.executors},
    GroupCount: GROUP_COUNTS,
    MakesPod: _MAKES_PODS,
}
"""The functions that an entry may name, by the type of the column."""


def rows_of(entries: Sequence[dict[str, Any]]) -> tuple[KindRow, ...]:
    """Return a row for each entry. A `row` of `between` names another entry by group and kind: batch/Job."""
    by_name = {f"{entry['group']}/{entry['kind']}": entry for entry in entries}
    made: dict[str, KindRow] = {}

    def row(name: str) -> KindRow:
        if name not in made:
            made[name] = row_of(by_name[name] | {"templates": list(map(linked, by_name[name].get("templates", ())))})
        return made[name]

    def linked(template: dict[str, Any]) -> dict[str, Any]:
        passed = template.get("between", ())
        return template | {"between": [each | {"row": row(each["row"])} if "row" in each else each for each in passed]}

    return tuple(map(row, by_name))


def row_over(known: KindRow, entry: Mapping[str, Any]) -> KindRow:
    """Return a row with the fields that an entry has in place of its own."""
    named = {"group": known.group, "kind": known.kind, "plural": known.plural, "source": known.source}
    made = row_of({**named, **entry})
    written = (field.name for field in structs.fields(KindRow) if field.encode_name in entry)
    return structs.replace(known, **{name: getattr(made, name) for name in written})


def row_of(entry: Mapping[str, Any]) -> KindRow:
    """Return the row of an entry."""
    divided = {"templates": list(map(_divided, entry["templates"]))} if "templates" in entry else {}
    return msgspec.convert({**entry, **divided}, KindRow, dec_hook=_by_name)


def holder_of(path: str, replicas: str | None) -> list[str]:
    """Return the steps to the object that holds a template and its number of pods."""
    whole = steps(path)
    if replicas is None:
        return whole if whole[-1:] == ["*"] else whole[:-1]
    both = zip(whole, steps(replicas), strict=False)
    return [step for step, _ in takewhile(lambda pair: pair[0] == pair[1], both)]


def _divided(template: Mapping[str, Any]) -> dict[str, Any]:
    """Divide the paths of a template at its holder."""
    path, replicas = template["path"], template.get("replicas")
    holder = steps(template["holder"]) if "holder" in template else holder_of(path, replicas)
    divided = dict(template) | {"holder": ".".join(holder), "path": ".".join(steps(path)[len(holder) :])}
    if replicas is not None:
        divided["pods"] = counted_at(".".join(steps(divided.pop("replicas"))[len(holder) :]))
    return divided


def _by_name(column: Any, named: Any) -> Callable[..., Any]:
    return named if callable(named) else _NAMED[column][named]
