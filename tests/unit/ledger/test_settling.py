"""The writes of the leader that wait for more: those that free nothing, and inform nobody."""

import pytest

from tests.unit.clock import Clock
from tests.unit.ledger.accounts import an_account, an_entry, tenant
from webhook.ledger.account import Account
from webhook.ledger.leader.counting import MOST_SETTLED, SETTLE_SECONDS, Settling
from webhook.ledger.versions import Version
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.quota.tenant_status import Status

ALPHA = tenant(100)
SAID: Status = {"observedGeneration": 1}
RESERVED, SEEN = an_account(an_entry("one")), an_account(used=1)


def a_version(account: Account) -> Version:
    return Version(TenantQuota("alpha", 1, ALPHA, status=SAID), account, sealed=True, tenant=ALPHA)


def test_a_reservation_whose_pod_is_seen_waits_a_second_for_others():
    clock = Clock()
    settling = Settling(clock)
    assert settling.may_wait(a_version(RESERVED), SEEN, SAID)
    assert settling.due() == clock() + SETTLE_SECONDS
    clock.now += SETTLE_SECONDS / 2
    assert settling.may_wait(a_version(RESERVED), SEEN, SAID)
    assert settling.overdue() == []
    clock.now += SETTLE_SECONDS / 2
    assert settling.overdue() == ["alpha"]
    assert not settling.may_wait(a_version(RESERVED), SEEN, SAID)
    assert settling.due() is None


def test_nothing_to_write_is_not_due():
    settling = Settling(Clock())
    assert settling.may_wait(a_version(RESERVED), SEEN, SAID)
    assert settling.may_wait(a_version(SEEN), SEEN, SAID)
    assert settling.due() is None


def test_many_settled_reservations_do_not_wait():
    reserved = an_account(*(an_entry(f"pod-{number}") for number in range(MOST_SETTLED)))
    assert not Settling(Clock()).may_wait(a_version(reserved), an_account(used=MOST_SETTLED), SAID)


PREEMPTED = an_account(an_entry("one", state="Used", preempted=True))


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        pytest.param(SEEN, an_account(), SAID, id="a pod has ended"),
        pytest.param(RESERVED, an_account(), SAID, id="a reservation came to nothing"),
        pytest.param(SEEN, an_account(used=2), SAID, id="a pod came that nobody booked"),
        pytest.param(SEEN, PREEMPTED, SAID, id="a pod is preempted, and may be replaced"),
        pytest.param(SEEN, SEEN, {"observedGeneration": 2}, id="the spec is another"),
    ],
)
def test_what_frees_or_tells_something_is_written_at_once(before: Account, after: Account, status: Status):
    assert not Settling(Clock()).may_wait(a_version(before), after, status)
