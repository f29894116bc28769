"""Rules of the oracle that random histories break yet: each with its reason. The list may only shrink.

Each is a documented limit, or an error of the oracle, which says what it does not know.
"""

from tests.honest.report import Failure

NOT_ASSERTED: dict[str, str] = {
    # Documented limits (docs/quota.md, docs/ledger.md)
    "half a gang was admitted after a change of onExceed": "a queued gang is not booked; once its quota refuses, pods "
    "that are created again come without a gate and are booked one by one",
    "something is reserved for nobody | Demote": "a scale demoted the gang: its running pods keep their tier, and its "
    "lower tier reserves all of it, because a pod that is made again comes in that one",
    "half a gang of a new tenant was admitted": "NEW_TENANT: to one replica the namespace had no tenant",
    "replacement of a preempted pod refused | Demote Job": "a create waits 1 s for news, and the watch lagged longer",
    "refused for GPUs that nobody will use": "a pod that was deleted before the leader saw it holds its GPUs for "
    "createTimeoutSeconds",
    # Errors of the oracle
    "a second mutation changes something": "others took the room between the two, so the pod is demoted by the second",
    "pod of a booked gang refused | Demote": "its tenant queued it before, and an update that asks for no more is no "
    "booking of the gang: the oracle takes each update for one",
    "sentence says less used than is": "it counts a pod from its create, the account from its sight",
}
"""Beginnings of signatures, and why they are let pass."""


NEW_TENANT = """
A replica knows a TenantQuota that is made again, or a namespace that moves, when its watch shows it: within a second or
two two replicas may judge one pod by different tenants.
"""
"""A limit that the oracle knows: it judges no such pod, and counts such a charge as one that may stand."""


def is_known(failure: Failure) -> bool:
    return failure.signature.startswith(tuple(NOT_ASSERTED))
