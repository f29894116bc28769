"""Books a gang whose pods were counted one by one so far."""

from webhook.ledger.draft import NotNow, gang_to_book
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.protocol import Booked, GangBooking
from webhook.ledger.versions import WorkingCopy
from webhook.policy.quota.charges import Shortfall


def book_with_its_pods(copy: WorkingCopy, view: PodView, booking: GangBooking) -> Booked | Shortfall | NotNow:
    """Book a gang in a slot with these pods inside. A Job of one pod that grows to four needs room for three."""
    key = booking.namespace, booking.uid
    if not copy.sealed or key in copy.account.gangs or not view.held_by(key, ()):
        return copy.book(booking)
    trial = WorkingCopy(copy.version)
    trial.put(rewritten(copy.account, view, part=gang_to_book(booking), holds=copy.version.in_force.holds))
    answer = trial.book(booking)
    if isinstance(answer, Booked):
        copy.put(trial.account)
    return answer
