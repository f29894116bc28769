"""Groups of pods, Kubernetes' own and those of other schedulers: how they are looked up, and what is read of one."""

from typing import Any

from webhook.cluster.stored_objects import FreshLookups, StoredObjects, in_time, kept_objects
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.podgroups import PodGroup, PodGroupTemplate, SchedulingWorkload, TemplateReference
from webhook.objects.refusal import Missing, Refused
from webhook.objects.view import at, view
from webhook.policy.assignment.assigned_by import class_borne, read_assigned_by
from webhook.policy.values.facts import Group
from webhook.policy.workloads.pod_groups import GroupSource, SchedulersGroup


class GroupLookup(FreshLookups, frozen=True):
    """`Groups` of an API server."""

    objects: StoredObjects
    groups: TTLCache[tuple[str, str], Group] = kept_objects()
    workloads: TTLCache[tuple[str, str], SchedulingWorkload] = kept_objects()
    composites: TTLCache[tuple[str, str], Group] = kept_objects()
    schedulers_groups: TTLCache[tuple[str, GroupSource, str], SchedulersGroup] = kept_objects()

    async def close(self) -> None:
        for cache in (self.groups, self.workloads, self.composites, self.schedulers_groups):
            await cache.close()

    async def group(self, namespace: str, name: str) -> Group:
        async with in_time(f"PodGroup/{name}"):
            return await self.groups.get((namespace, name), lambda: self._group(namespace, name), self.since)

    async def composite(self, namespace: str, name: str) -> Group | None:
        """Return a CompositePodGroup; None where there is none: nobody checks that it exists."""
        async with in_time(f"CompositePodGroup/{name[:63]}"):
            try:
                return await self.composites.get(
                    (namespace, name), lambda: self._composite(namespace, name), self.since
                )
            except Missing:
                return None

    async def template(self, namespace: str, reference: TemplateReference) -> PodGroupTemplate | None:
        """The template of a Workload that a PodGroup names; None where there is none: nobody checks that it exists."""
        key = (namespace, reference.workload_name)
        async with in_time(f"Workload/{reference.workload_name[:63]}"):
            try:
                found = await self.workloads.get(key, lambda: self._workload(*key), self.since)
                return found.template(reference.template)
            except Missing:
                return None

    async def schedulers_group(self, namespace: str, source: GroupSource, name: str) -> SchedulersGroup:
        key = namespace, source, name
        async with in_time(f"PodGroup/{name[:63]}"):
            try:
                return await self.schedulers_groups.get(key, lambda: self._schedulers_group(*key), self.since)
            except (Missing, Refused):  # nothing has that name, or none could
                return SchedulersGroup(source, name)

    async def _group(self, namespace: str, name: str) -> Group:
        tree = await self.objects.named("scheduling.k8s.io", "podgroups", namespace, name, f"PodGroup/{name}")
        found = view(tree, PodGroup)
        return group_of(found, name, prioritized=found.spec.priority is not None)

    async def _composite(self, namespace: str, name: str) -> Group:
        shown = f"CompositePodGroup/{name[:63]}"
        tree = await self.objects.named("scheduling.k8s.io", "compositepodgroups", namespace, name, shown)
        return group_of(view(tree, PodGroup), name, prioritized=True)

    async def _workload(self, namespace: str, name: str) -> SchedulingWorkload:
        tree = await self.objects.named("scheduling.k8s.io", "workloads", namespace, name, f"Workload/{name}")
        return view(tree, SchedulingWorkload)

    async def _schedulers_group(self, namespace: str, source: GroupSource, name: str) -> SchedulersGroup:
        tree = await self.objects.named(source.kind.group, "podgroups", namespace, name, f"PodGroup/{name[:63]}")
        return schedulers_group_of(tree, source, name)


def group_of(found: PodGroup, name: str, *, prioritized: bool) -> Group:
    """Return the group of that name. `prioritized`: the API server keeps a class and a priority on it."""
    assigned_by = read_assigned_by(found.metadata.annotations)
    return Group(
        name,
        class_borne(found),
        prioritized=prioritized,
        demoted_from=assigned_by.demoted_from if assigned_by else "",
        pods=_count(at(found.spec.scheduling_policy.gang, "minCount")),
        claims=found.spec.resource_claims,
    )


def schedulers_group_of(tree: dict[str, Any], source: GroupSource, name: str) -> SchedulersGroup:
    """The PodGroup of Volcano, of KAI or of the coscheduling plugin."""
    class_name = at(tree, "spec.priorityClassName")
    pods = _count(at(tree, "spec.minMember"))
    return SchedulersGroup(source, name, pods, class_name if isinstance(class_name, str) else "")


def _count(found: object) -> int:
    return found if type(found) is int and found > 0 else 0
