"""Rules of the oracle that random histories break yet: each with its reason. The list may only shrink.

Each is a known defect of gpu-tiers, a documented limit, or an error of the oracle, which says what it does not know.
"""

from tests.honest.report import Failure

NOT_ASSERTED: dict[str, str] = {
    # Defects
    "workload refused with room | Deny Job update [grows from one pod]": "an account does not say what a Job's one pod "
    "holds, so a Job that becomes a gang needs room for all of its pods",
    "workload refused with room | Deny PyTorchJob update [grows from one pod]": "the same",
    "demoted with room": "the pod that takes a slot is looked at beside the one that leaves it",
    "replacement of a preempted pod demoted": "the same",
    "replacement of a preempted pod refused | Demote": "the same",
    "pod of a booked gang refused | Demote": "a replica still knows the tier that the gang had before it grew",
    "overtaken by a younger one of its tier": "positions are lost by a crash, by surplus workers and by a resize",
    "refused for GPUs that nobody will use": "each retry of a controller whose creates a ResourceQuota refuses books "
    "GPUs of its own, for createTimeoutSeconds; so does a PodGroup whose pods went before the leader saw them",
    "something is reserved for nobody | Demote": "a gang with pods in two tiers is charged for all at the declared one",
    "half a gang was admitted after a change of onExceed": "a gang that waits is not booked; once its quota refuses, "
    "pods that are made for it come without a gate and are booked one by one",
    # Documented limits
    "half a gang of a new tenant was admitted": "NEW_TENANT: to one replica the namespace had no tenant",
    "waits for a gang that is gone": "ORPHANS: those of a LeaderWorkerSet, and of Jobs of one pod of a JobSet",
    # Errors of the oracle
    "sentence says less used than is": "it counts a pod from its create, the account from its sight",
}
"""Beginnings of signatures, and why they are let pass."""


ORPHANS = """
A pod of a gang waits behind the gate while the gang is deleted with --cascade=orphan: it waits for the gang until it is
deleted, because it looks like the pod of a gang that the garbage collector is about to delete.
"""
NEW_TENANT = """
A replica knows a TenantQuota that is made again, or a namespace that moves, when its watch shows it: within a second or
two two replicas may judge one pod by different tenants.
"""
"""Limits that the oracle knows: it judges no such pod, and counts such a charge as one that may stand."""


def is_known(failure: Failure) -> bool:
    return failure.signature.startswith(tuple(NOT_ASSERTED))
