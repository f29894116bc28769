"""What one pod books: made of the pod as it exists, never of what it was asked for."""

from collections.abc import Iterable
from dataclasses import dataclass

from webhook.objects.pods import Pod
from webhook.policy.quota.charges import Charge, counted_as
from webhook.policy.quota.demand import demand_of, flavor_of
from webhook.policy.values.facts import Devices
from webhook.policy.values.tier_policy import TierPolicy


@dataclass(frozen=True, slots=True)
class Entry:
    """One pod's charge. `until` is the clock's time at which it lapses: a reservation's end, or a deletion's."""

    namespace: str
    charge: Charge
    until: float | None = None
    seen: bool = False


def entry_of(pod: Pod, until: float | None, devices: Iterable[Devices], policy: TierPolicy) -> Entry | None:
    """The entry of a pod that exists; None where it holds no GPU. Its class says the tier: labels are mutable."""
    gpus = demand_of(pod, devices, policy)
    if not gpus:
        return None
    tier = counted_as(pod.spec.priority_class_name, pod.spec.priority, policy.tiers)
    charge = Charge(gpus, tier, flavor_of(pod, policy.flavors))
    return Entry(pod.metadata.namespace, charge, until, seen=True)
