"""Warnings of workloads whose pods wait for their turn: what controllers do meanwhile, with the field that helps."""

from collections.abc import Iterator

from webhook.objects.phrase import AdmissionWarning
from webhook.objects.view import Tree, all_at, at, mapped
from webhook.policy.workloads.kind_table import KindRow


def held_warnings(tree: Tree, row: KindRow) -> Iterator[AdmissionWarning]:
    """Those of a workload that is not suspended and whose tenant holds."""
    kind = row.while_queued
    # 1. A rollout makes new pods beside the old ones, which keep their GPUs until the new ones run. Controllers round
    #    a percentage up.
    surge = at(tree, kind.surge) if kind.surge else 0
    some = kind.surge_by_default if surge is None else str(surge).removesuffix("%").strip("0") != ""
    if (
        some
        and at(tree, "spec.strategy.type") != "Recreate"
        and not (kind.unless and at(tree, kind.unless) is not None)
    ):
        yield AdmissionWarning("held-surge", field=kind.surge)

    # 2. Clocks run while the pods wait.
    for place in kind.deadlines:
        seconds = (found for _, found in all_at(tree, place) if found is not None)
        yield from (AdmissionWarning("held-deadline", field=place.rpartition(".")[2], seconds=each) for each in seconds)
    policy = at(tree, kind.concurrency) or "Allow" if kind.concurrency else "Forbid"
    if policy != "Forbid":
        yield AdmissionWarning("held-schedule", policy=policy)

    # 3. Pods that wait keep others from being made, or are given up.
    replicas = at(tree, "spec.replicas")
    if kind.order and at(tree, kind.order) != "Parallel" and isinstance(replicas, int) and replicas > 1:
        yield AdmissionWarning("held-in-order")
    if kind.on_every_node:
        yield AdmissionWarning("held-on-nodes")
    if kind.progress:
        deadline = mapped(at(tree, kind.progress)).get("serving.knative.dev/progress-deadline")
        yield AdmissionWarning("held-to-zero", deadline=deadline or "600s")
