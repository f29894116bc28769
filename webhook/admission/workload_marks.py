"""Writes a workload's tier where others read it, at its CREATE: Kueue's label, the class of its pod templates, and the
rank and queue of a Volcano Job.

A class is written only where a second `kubectl apply` of the same manifest leaves it alone: all the way down maps. An
apply replaces a list as a whole, so it would take the class out again, and a JobSet, whose spec is immutable, could not
be applied twice. So a workload with a template in a list keeps all of its templates as they are.
"""

from collections.abc import Iterator

from msgspec import structs

from webhook.admission.facts import facts_of_workload, workload_as_sent
from webhook.admission.patch import add, entries, escaped
from webhook.admission.review import Operation, Request
from webhook.admission.reviewer import Verdict, gang_booking
from webhook.cluster.cluster import Cluster
from webhook.ledger.protocol import Ledger
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Named, is_filled_in
from webhook.objects.refusal import AdmissionWarning
from webhook.objects.view import Tree, at, read, steps
from webhook.policy.assignment.kueue import (
    PRIORITY_CLASS,
    QUEUE_CLASS,
    queues_workload,
    workload_class_due,
)
from webhook.policy.assignment.request import class_asked
from webhook.policy.checkpoint.job_failures import LOST_NODE, fields_due
from webhook.policy.decide_workload import WorkloadDecision, decide_workload, lower_tiers, made_by_another
from webhook.policy.metadata_keys import due
from webhook.policy.quota.charges import Shortfall, shortfall
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import Scheduling, TierPolicy
from webhook.policy.values.tiers import live_class
from webhook.policy.workloads.templates import TEMPLATE_CLASS
from webhook.policy.workloads.workload import Member

_VOLCANO_JOB = GroupKind("batch.volcano.sh", "Job")
_JOB = GroupKind("batch", "Job")
"""Kueue queues the Jobs of a CronJob. Other controllers take a foreign label off again, which Kueue refuses."""


async def marks(request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """Return a workload's tier as a patch, if somebody reads it there. Raises Refused for a person's mistake."""
    kind = GroupKind(request.kind.group, request.kind.kind)
    forgives = kind == _JOB and policy.checkpoint.pod_failure_policy == "Add"
    if policy.kueue is None and policy.templates != "Mutate" and kind != _VOLCANO_JOB and not forgives:
        return Verdict()
    tree, metadata = workload_as_sent(request.object), read(request.object, Named).metadata
    row = policy.kinds.by_kind[kind]
    known = await facts_of_workload(tree, row, metadata, request.namespace, cluster, policy)
    facts, decision = known.facts, decide_workload(known.whole, known.facts, policy)
    if decision is None:
        return Verdict()
    written, applied = _Written(tree), metadata.controller is None
    if applied or row.group_kind == _JOB:
        _tell_kueue(written, decision, facts, policy)
    if applied and policy.templates == "Mutate":
        _write_classes(written, decision, facts)
    more: tuple[Operation, ...] = ()
    warnings: tuple[AdmissionWarning, ...] = ()
    if forgives and decision.saving:
        fields = fields_due(tree, decision.saving)
        more = tuple(add(f"/spec/{field}", value) for field, value in fields.items())
        warnings = () if not fields or made_by_another(facts) else (LOST_NODE,)
    if kind == _VOLCANO_JOB:
        more = tuple(_volcano_queue(tree, decision, policy))
        if rank := await _volcano_rank(request, decision, ledger):
            written.class_of("", rank)
    tenant = facts.tenant.name if facts.tenant else None
    return Verdict(decision.assignment, (*more, *written.operations()), warnings, tenant=tenant)


class _Written:
    """Gathers what to write on a workload and its templates, so that each absent map is made once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._labels: dict[str, dict[str, str]] = {}
        self._annotations: dict[str, dict[str, str]] = {}
        self._classes: dict[str, str] = {}

    def queue_class(self, path: str, name: str) -> None:
        """Kueue's label, on the object or on one of its templates."""
        self._labels.setdefault(path, {})[PRIORITY_CLASS] = name
        self._annotations.setdefault(path, {})[QUEUE_CLASS] = name

    def class_of(self, path: str, name: str) -> None:
        """The class of a template, or of the whole object, and that it is ours."""
        self._classes[path] = name
        self._annotations.setdefault(path, {})[TEMPLATE_CLASS] = name

    def operations(self) -> Iterator[Operation]:
        """Return the patch without what is there already."""
        for path, name in self._classes.items():
            if at(at(self._tree, path), "spec.priorityClassName") != name:
                yield add(f"{_pointer(path)}/spec/priorityClassName", name)
        for path, annotations in self._annotations.items():
            yield from self._on_metadata(path, self._labels.get(path, {}), annotations)

    def _on_metadata(self, path: str, labels: dict[str, str], annotations: dict[str, str]) -> Iterator[Operation]:
        there, where = at(at(self._tree, path), "metadata"), f"{_pointer(path)}/metadata"
        if not isinstance(there, dict):
            yield add(where, {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value})
            return
        for kind, wanted in (("labels", labels), ("annotations", annotations)):
            written = there.get(kind) or {}
            yield from entries(f"{where}/{kind}", written, due(written, wanted))

    def reaches(self, member: Member) -> bool:
        """Tell whether a template stands in the object itself, whole, and all the way down maps."""
        template = at(self._tree, member.path) if member.form == "template" else None
        return isinstance(template, dict) and isinstance(template.get("spec"), dict)


def _tell_kueue(written: _Written, decision: WorkloadDecision, facts: Facts, policy: TierPolicy) -> None:
    """The label on what Kueue queues, and on the templates into which Kueue would copy it later."""
    own, name = facts.owners[0], workload_class_due(facts.owners[0], decision.assignment)
    if name is None or not queues_workload(facts, policy):
        return
    copies = own.members if own.row.kueue == "Copies" else ()
    for path in ("", *(member.path for member in copies if written.reaches(member))):
        written.queue_class(path, name)


def _write_classes(written: _Written, decision: WorkloadDecision, facts: Facts) -> None:
    """The class of each template that is ours and names none; of all of them or of none."""
    placed = {id(member.template): member for member in facts.owners[0].members}
    members = [(placed[id(each.tier_request.pod)], each) for each in decision.decisions]
    if not all(written.reaches(member) for member, _ in members):
        return
    for member, each in members:
        if each.live is not None and not class_asked(member.template):
            written.class_of(member.path, each.live.name)


def _pointer(path: str) -> str:
    return "".join(f"/{escaped(step)}" for step in steps(path))


def _volcano_queue(tree: Tree, decision: WorkloadDecision, policy: TierPolicy) -> Iterator[Operation]:
    """The queue of its tier for a Job that names none; its PodGroup and its pods get it from there.

    Volcano's own webhook, which the API server asks before ours, fills in `default`.
    """
    tier, there = decision.assignment.tier, at(tree, "spec.queue")
    wanted = policy.scheduling.get(tier.name, Scheduling()).queue if tier else None
    if wanted is None or wanted.system != "Volcano":
        return
    if not there or (there == "default" and is_filled_in(tree, "spec", "queue")):
        yield add("/spec/queue", wanted.name)


async def _volcano_rank(request: Request, decision: WorkloadDecision, ledger: Ledger) -> str:
    """The class by which Volcano is to rank a Job; "" where a person has named one, or it has no tier.

    Volcano ranks Jobs by the class of their PodGroups alone, which it takes from the Job's `spec.priorityClassName`. A
    Job without one has the priority of the cluster's default class, whatever its pods have (Volcano's priority plugin).
    Of one that its tenant's quota demotes, the class of the tier to which it will be, by what is booked at this moment.
    """
    live, of_pods, tenant = decision.leading.live, decision.leading.tier_request, decision.facts.tenant
    if live is None or decision.own.class_name:
        return ""
    short = await _shortfall(request, decision, tenant, ledger) if tenant and tenant.demotes else None
    lower = next(lower_tiers(decision, short), None) if short else None
    if lower is None:
        return live.name
    return live_class(lower, of_pods.facts.classes, adoption=of_pods.policy.adoption).name


async def _shortfall(request: Request, decision: WorkloadDecision, tenant: Tenant, ledger: Ledger) -> Shortfall | None:
    """Return where the whole gang has no room, or the first pod of a workload that is no gang."""
    if decision.gang is None:
        charge, of_one = decision.leading.charge, decision.leading.least
        one_pod = structs.replace(charge, gpus=of_one.gpus) if charge and of_one else charge
        return shortfall([one_pod], tenant, ledger.usage(tenant, decision.shared)) if one_pod else None
    booking = gang_booking(request, decision.gang, tenant, decision.leading.tier_request.policy.tiers)
    answer = await ledger.book(booking, dry_run=True)
    return answer if isinstance(answer, Shortfall) else None
