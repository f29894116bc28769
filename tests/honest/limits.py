"""Rules of the oracle that random histories break yet: each with its reason. The list may only shrink.

Each is a known defect of gpu-tiers, a documented limit, or an error of the oracle, which says what it does not know.
"""

from tests.honest.report import Failure

NOT_ASSERTED: dict[str, str] = {
    # Defects
    "replacement of a preempted pod refused | Demote Job": "two pods of a gang are preempted at once in a full total",
    "refused for GPUs that nobody will use": "a PodGroup whose pods went before the leader saw them holds its GPUs for "
    "createTimeoutSeconds",
    "half a gang was admitted after a change of onExceed": "a gang that waits is not booked; once its quota refuses, "
    "pods that are made for it come without a gate and are booked one by one",
    # Documented limits
    "something is reserved for nobody | Demote": "a scale demoted the gang: its running pods keep their tier, and its "
    "lower tier reserves all of it, because a pod that is made again comes in that one",
    "half a gang of a new tenant was admitted": "NEW_TENANT: to one replica the namespace had no tenant",
    "waits for a gang that is gone": "ORPHANS: those of a LeaderWorkerSet, and of Jobs of one pod of a JobSet",
    # Errors of the oracle
    "a second mutation changes something": "others took the room between the two, so the pod is demoted by the second",
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
