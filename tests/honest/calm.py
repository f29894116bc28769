"""The seconds in which books may be expected to be right: not just after a change that takes its time."""

from collections import defaultdict

from tests.honest.expected import WINDOW
from tests.ledger.virtual_time import loop

MOVED_SECONDS = 100.0
"""After a namespace has moved, or a TenantQuota was made again: H, and the time to list."""
LEADERLESS_SECONDS = 20.0
"""After nobody has led: the next leader lists first."""
PREEMPTED_SECONDS = 140.0
"""After a preemption: the GPUs of the preempted pod stay reserved for its replacement."""
NEWS_SECONDS = 3.0
"""After a namespace has moved, or a TenantQuota was made again: until all replicas have seen it."""
LONG_AGO = float("-inf")


class Calm:
    """The disturbances of the books, with their times."""

    def __init__(self) -> None:
        self.moved_at = LONG_AGO
        self.leaderless_until = LONG_AGO
        self.preempted_at = LONG_AGO
        self.quota_changed_at: defaultdict[str, float] = defaultdict(lambda: LONG_AGO)
        self.mode_changed_at: defaultdict[str, float] = defaultdict(lambda: LONG_AGO)

    def knows_tenants(self) -> bool:
        """Tells whether all replicas have seen which tenant a namespace has: limits.NEW_TENANT."""
        return loop().time() > self.moved_at + NEWS_SECONDS

    def knows_mode(self, tenant: str) -> bool:
        """Tells whether all replicas have seen what a tenant does with what is over its quota."""
        return loop().time() > self.mode_changed_at[tenant] + NEWS_SECONDS

    def is_quiet(self) -> bool:
        now = loop().time()
        return now > self.moved_at + MOVED_SECONDS and now > self.leaderless_until + LEADERLESS_SECONDS

    def has_same_quota(self, tenant: str, seconds: float) -> bool:
        return self.quota_changed_at[tenant] < loop().time() - seconds

    def has_always_had_its_quota(self, tenant: str) -> bool:
        """Tells whether neither a quota, nor what is over it, nor whose a namespace is has ever changed."""
        since = (self.moved_at, self.quota_changed_at[tenant], self.mode_changed_at[tenant])
        return max(since) == LONG_AGO

    def is_fair(self, tenant: str) -> bool:
        """Tells whether an answer for want of room may be judged now."""
        changed = self.mode_changed_at[tenant] > loop().time() - WINDOW - 2
        return self.is_quiet() and not changed and self.has_same_quota(tenant, WINDOW + 2)

    def patience(self) -> float:
        """Return for how long somebody may wait though there is room."""
        return PREEMPTED_SECONDS if loop().time() < self.preempted_at + PREEMPTED_SECONDS else 25.0

    def is_settled(self) -> bool:
        """Tells whether whoever waits with room may be judged now."""
        now = loop().time()
        return now > self.leaderless_until + PREEMPTED_SECONDS and now > self.moved_at + PREEMPTED_SECONDS
