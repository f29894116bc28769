"""Rules of the oracle that random histories break yet: each with its reason. The list may only shrink.

Each is a known defect of gpu-tiers, a documented limit, or an error of the oracle, which says what it does not know.
"""

from tests.honest.report import Failure

NOT_ASSERTED: dict[str, str] = {
    # Defects
    "workload refused with room | Deny Job update [grows from one pod]": "an account does not say what a Job's one pod "
    "holds, so a Job that becomes a gang needs room for all of its pods",
    "workload refused with room | Deny PyTorchJob update [grows from one pod]": "the same",
    "replacement of a preempted pod refused | Demote Job": "two pods of a gang are preempted at once in a full total",
    "overtaken by a younger one of its tier": "positions are lost by a crash, by surplus workers and by a resize",
    "something is reserved for nobody | Demote": "a gang with pods in two tiers is charged for all at the declared one",
    # Documented limits
    "status says another queue": "pods of Jobs of one pod whose JobSet was deleted without them wait for it",
    # A defect or an error of the oracle: nobody has looked yet. Seeds 320010, 120005 and 620001 show it.
    "says that it can't start, and it runs lower | Demote Deployment create": "the oracle sees room in a lower tier",
    "says that it can't start, and it runs lower | Demote StatefulSet create": "the same",
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
UNSEEN_GROUPS = """
The pods of a group without a workload, such as a PodGroup, that are deleted within a second of their create: the leader
may not have seen them, so the charge of the group stands until its reservation ends, in createTimeoutSeconds.
"""
"""Limits that the oracle knows: it judges no such pod, and counts such a charge as one that may stand."""


def is_known(failure: Failure) -> bool:
    return failure.signature.startswith(tuple(NOT_ASSERTED))
