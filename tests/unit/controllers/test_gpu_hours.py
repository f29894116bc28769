"""GPU-hours of a budget: the leader's integral against a sum over the pods, which knows when each ran."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from webhook.controllers.gpu_hours import BudgetMeters
from webhook.controllers.pods_on_nodes import WITHIN_A_SECOND, Placed
from webhook.kube.errors import Unreachable
from webhook.ledger.protocol import Holding
from webhook.objects.times import calendar_period, unix_seconds
from webhook.policy.quota.budgets import noted
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.tenant_quotas import TenantQuota, tenant_quota_of

BERLIN = "Europe/Berlin"
HOUR, DAY = 3600.0, 86400.0


def at(time: str) -> float:
    found = unix_seconds(time)
    assert found is not None
    return found


NEW_YEAR = at("2026-01-01T00:00:00+01:00")


@dataclass
class Ran:
    """A pod as it really ran."""

    uid: str
    charge: Charge
    begins: float
    ends: float
    namespace: str = "alpha-a"
    stays: bool = True
    """Its object outlives it, as that of a Job's pod does."""

    def seen(self, *, ended: bool = False) -> Placed:
        """The pod by its object, whose times have whole seconds."""
        holding = Holding(self.namespace, self.charge, name=self.uid)
        return Placed(holding, int(self.begins) + WITHIN_A_SECOND, int(self.ends) + WITHIN_A_SECOND if ended else None)


@dataclass
class Site:
    """A tenant's pods, the time, and the leaders that follow one another. It stores what they note."""

    spec: dict[str, Any]
    now: float = NEW_YEAR
    pods: dict[str, Ran] = field(default_factory=dict)
    finished: dict[str, Ran] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[str, str]] = field(default_factory=list)
    name: str = "alpha"
    unreadable: bool = False
    is_deleted: bool = False
    _followers: list[Callable[[str, TenantQuota | None], None]] = field(default_factory=list)
    _leader: BudgetMeters | None = None
    _changed: set[str] = field(default_factory=set)

    # --- what a leader sees of the cluster

    @property
    def quotas(self) -> Any:
        def follow(on_change: Callable[[str, TenantQuota | None], None], _: object) -> None:
            self._followers.append(on_change)

        return SimpleNamespace(objects={self.name: self.quota()}, follow=follow)

    def quota(self) -> TenantQuota:
        tree = {"metadata": {"name": self.name, "uid": "1"}, "spec": self.spec, "status": self.status}
        return tenant_quota_of({"apiVersion": "gpu-tiers.dev/v1alpha1", "kind": "TenantQuota", **tree})

    def subscribe(self, _: Callable[[], None]) -> None: ...

    def tenants(self) -> list[Any]:
        return [] if self.is_deleted else [self.quota().tenant]

    def tenant_name(self, namespace: str) -> str | None:
        return self.name if namespace.startswith("alpha") else None

    def tenant_uid(self, _: str) -> str:
        return "1"

    def placed(self) -> Iterator[tuple[str, Placed]]:
        yield from ((uid, each.seen()) for uid, each in self.pods.items())

    async def ended(self, time: float) -> Iterable[tuple[str, Placed]]:
        if self.unreadable:
            raise Unreachable("no answer")
        return [(uid, each.seen(ended=True)) for uid, each in self.finished.items() if each.ends > time]

    def add(self, _: object, reason: str, message: str) -> None:
        self.events.append((reason, message))

    # --- what happens

    async def lead(self) -> BudgetMeters:
        """Another replica leads: it knows the status alone."""
        cluster: Any = self
        self._followers.clear()
        self._leader = BudgetMeters(
            cluster, self.placed, self.ended, lambda: True, lambda: self.now, self._changed.add, cluster
        )
        self._leader.begin()
        await self._leader.look()
        self.write()
        return self._leader

    def crash(self) -> None:
        self._leader = None

    def write(self) -> None:
        """The account is written, with the notes of this moment."""
        tenant = self.quota().tenant
        assert self._leader is not None
        assert tenant is not None
        self.status |= self._leader.status(tenant, self.status)
        for each in self._followers:
            each(self.name, self.quota())

    async def look(self) -> None:
        if self._leader is not None:
            self._changed.clear()
            await self._leader.look()
            if self._changed:
                self.write()

    def begin(self, pod: Ran) -> None:
        self.pods[pod.uid] = pod
        if self._leader is not None:
            self._leader.pod_changed(pod.uid, pod.seen())
            self.write()

    def end(self, uid: str) -> None:
        pod = self.pods.pop(uid)
        if pod.stays:
            self.finished[uid] = pod
        if self._leader is not None:
            self._leader.pod_changed(uid, None)
            self.write()  # it frees room

    def note(self, nth: int = 0) -> Any:
        tenant = self.quota().tenant
        assert tenant is not None
        found = noted(self.status, tenant.budgets[nth])
        assert found is not None
        return found


def a_site(*budgets: Mapping[str, Any], **more: Any) -> Site:
    return Site({"namespaceSelector": {}, "budgets": [*budgets], **more})


MONTHLY = {"tier": "gpu-training", "gpuHours": 5000, "per": "Month", "timeZone": BERLIN}


def training(gpus: int, **shared: int) -> Charge:
    return Charge(Decimal(gpus), "gpu-training", None, {claim: Decimal(each) for claim, each in shared.items()})


@pytest.mark.parametrize("days", [59, pytest.param(365, marks=pytest.mark.release)])
async def test_two_hundred_pods_a_day_with_leaders_that_change_and_hours_without_one(days: int) -> None:
    """The sum over the pods, by their true times, and the leader's differ by less than a second a pod, each month."""
    rng, site, pods = random.Random(43), a_site(MONTHLY), list[Ran]()  # noqa: S311 - the same pods each time
    steps: list[tuple[float, int, Callable[[], object]]] = []
    gaps = list[tuple[float, float]]()

    def step(time: float, do: Callable[[], object]) -> None:
        steps.append((time, len(steps), do))

    # 1. Pods: most of minutes, some of days. Of half of them the object goes with them.
    for nth in range(days * 200):
        begins = NEW_YEAR + rng.random() * days * DAY
        lasts = rng.expovariate(1 / 600) if rng.random() < 0.9 else rng.expovariate(1 / DAY)
        tier = "gpu-training" if rng.random() < 0.8 else "gpu-batch"
        pod = Ran(
            f"p{nth}", Charge(Decimal(rng.choice((1, 2, 8))), tier), begins, begins + lasts, stays=rng.random() < 0.5
        )
        pods.append(pod)
        step(pod.begins, lambda pod=pod: site.begin(pod))  # type: ignore[misc]
        step(pod.ends, lambda pod=pod: site.end(pod.uid))  # type: ignore[misc]

    # 2. A leader a day. Every week one crashes, and nobody leads for up to an hour. A note once a minute and less.
    for day in range(1, days):
        time = NEW_YEAR + day * DAY + rng.random() * DAY
        if day % 7 == 0:
            step(time, site.crash)
            gaps.append((time, time := time + rng.random() * HOUR))
        step(time, site.lead)
    for nth in range(days * 24 * 2):
        step(NEW_YEAR + nth * HOUR / 2 + rng.random(), site.look)

    # 3. At the end of each month: what was used in it, but for pods that came and went while nobody looked.
    def unseen(pod: Ran) -> bool:
        return not pod.stays and any(begins < pod.begins and pod.ends < ends for begins, ends in gaps)

    async def compare() -> None:
        await site.look()
        begins, _ = calendar_period("Month", BERLIN, site.now)
        mine = [each for each in pods if each.charge.tier == "gpu-training" and each.begins < site.now]
        mine = [each for each in mine if not unseen(each)]
        ran = [(each, min(each.ends, site.now) - max(each.begins, begins)) for each in mine if each.ends > begins]
        true, note = sum(float(each.charge.gpus) * max(lasts, 0) for each, lasts in ran), site.note()
        differs = abs(float(note.gpu_seconds) - true)
        assert differs <= sum(float(each.charge.gpus) for each, _ in ran) + float(note.unsure), site.now
        differences.append((differs - float(note.unsure)) / len(ran))
        site.finished.clear()

    differences = list[float]()
    until = NEW_YEAR
    while until < NEW_YEAR + days * DAY:
        _, until = calendar_period("Month", BERLIN, until)
        step(until - 1, compare)

    await site.lead()
    for time, _, do in sorted(steps, key=lambda each: each[:2]):
        if time < until:
            site.now = time
            done = do()
            if hasattr(done, "__await__"):
                await done  # type: ignore[misc]
    assert len(differences) == {59: 2, 365: 12}[days]
    assert max(differences) < 1, "seconds a pod"


async def test_hours_are_used_up_told_before_and_new_in_the_next_month() -> None:
    site = a_site({**MONTHLY, "gpuHours": 80})
    await site.lead()
    site.begin(Ran("p", training(8), site.now, site.now + 400 * DAY))
    for hours, told in ((7.9, []), (8.1, ["BudgetNearlyUsed"]), (9.6, 2 * ["BudgetNearlyUsed"])):
        site.now = NEW_YEAR + hours * HOUR
        await site.look()
        assert [reason for reason, _ in site.events] == told
        assert not site.tenants()[0].spent
    assert site.events[0][1] == (
        "64.8 of 80 GPU-hours of gpu-training are used, 81 % (new hours on 1 February 2026, 00:00 Europe/Berlin); "
        "the running pods use up the rest on 1 January 2026, 10:00 Europe/Berlin"
    )
    site.now = NEW_YEAR + 10 * HOUR + 1
    await site.look()
    assert site.events[-1][0] == "BudgetUsedUp"
    (spent,) = site.tenants()[0].spent
    assert (spent.label, spent.on_exceed) == ("GPU-hours of gpu-training", "Deny")

    await site.lead()  # the next leader tells nothing twice
    assert [reason for reason, _ in site.events].count("BudgetUsedUp") == 1
    site.now = at("2026-02-01T00:00:01+01:00")
    await site.look()
    assert not site.tenants()[0].spent
    assert site.note().gpu_seconds == 8


@pytest.mark.parametrize("shared", [0, 4])
async def test_a_claim_that_two_pods_share_is_used_once(shared: int) -> None:
    site = a_site(MONTHLY)
    await site.lead()
    charge = training(4, **({"alpha-a/claim": shared} if shared else {}))
    for uid, begins in (("p", 0), ("q", HOUR)):
        site.now = NEW_YEAR + begins
        site.begin(Ran(uid, charge, site.now, site.now + 2 * HOUR))
    for uid, ends in (("p", 2 * HOUR), ("q", 3 * HOUR)):
        site.now = NEW_YEAR + ends
        site.end(uid)
    hours = 12 if shared else 16
    assert abs(site.note().gpu_seconds - hours * 3600) < 4


async def test_of_a_pod_that_was_gone_when_a_leader_looked_again_half_of_the_time_counts_and_is_told() -> None:
    site = a_site(MONTHLY)
    await site.lead()
    site.begin(Ran("p", training(2), site.now, site.now + 90, stays=False))
    site.now += 60
    await site.look()
    site.crash()
    site.now += 30
    site.end("p")
    site.now += 70
    await site.lead()
    assert site.status["budgets"][0]["unsureGpuSeconds"] == "100"
    assert abs(float(site.note().gpu_seconds) - 2 * (60 + 50)) < 2


async def test_a_tenantquota_that_is_made_again_goes_on_with_the_hours_of_its_name() -> None:
    site = a_site({**MONTHLY, "gpuHours": 8})
    leader = await site.lead()
    site.begin(Ran("p", training(8), site.now, site.now + 9000))
    site.now += 2 * HOUR
    await site.look()
    assert site.tenants()[0].spent
    site.is_deleted = True
    leader._quota_changed("alpha", None)
    leader.count_again()
    await leader.look()
    site.is_deleted, site.status = False, {"ledger": {"format": 1}}
    leader._quota_changed("alpha", site.quota())
    leader.count_again()
    await site.look()
    assert site.tenants()[0].spent


async def test_while_ended_pods_cannot_be_read_nothing_is_noted_and_nothing_is_lost() -> None:
    site = a_site(MONTHLY)
    await site.lead()
    site.begin(Ran("p", training(1), site.now, site.now + 400 * DAY))
    site.now += HOUR
    await site.look()
    before = dict(site.status)
    site.unreadable = True
    site.now += HOUR
    await site.lead()
    assert site.status == before
    site.unreadable = False
    await site.look()
    assert abs(site.note().gpu_seconds - 7200) < 2


async def test_a_grant_raises_its_row_between_its_times_and_its_end_is_told_a_day_before() -> None:
    grant = {"tier": "gpu-training", "gpus": 8, "from": "2026-01-02T00:00:00Z", "until": "2026-01-09T00:00:00Z"}
    site = a_site(quotas=[{"tier": "gpu-training", "gpus": 4}, {"gpus": 16}], grants=[{**grant, "reason": "paper"}])
    await site.lead()
    hard = []
    for time in ("2026-01-01T12:00:00Z", "2026-01-02T00:00:01Z", "2026-01-08T00:00:01Z", "2026-01-09T00:00:01Z"):
        site.now = at(time)
        await site.look()
        hard.append([int(row.hard) for row in site.tenants()[0].rows])
    assert hard == [[4, 16], [12, 16], [12, 16], [4, 16]]
    assert site.events == [
        (
            "GrantEnds",
            "the grant of 8 GPUs more for gpu-training ends on 9 January 2026, 00:00 UTC; pods that run stay and count",
        )
    ]


async def test_a_budget_between_two_times_counts_only_there() -> None:
    budget = {"gpuHours": 1, "from": "2026-01-01T01:00:00Z", "until": "2026-01-01T03:00:00Z"}
    site = a_site(budget)
    await site.lead()
    site.begin(Ran("p", training(1), site.now, site.now + DAY))
    states = []
    for time in ("00:30", "01:30", "02:30", "03:30"):
        site.now = at(f"2026-01-01T{time}:00Z")
        await site.look()
        states.append((site.status["hours"], bool(site.tenants()[0].spent)))
    assert states == [("", False), ("total 0.5/1", False), ("total 1.5/1", True), ("", False)]


async def test_a_pod_that_is_force_deleted_and_made_again_by_other_names_hides_nothing() -> None:
    site = a_site(MONTHLY)
    await site.lead()
    for nth in range(60):
        site.begin(Ran(f"name-{nth}", training(8), site.now, site.now + 10, stays=False))
        site.now += 10
        site.end(f"name-{nth}")
    assert abs(float(site.note().gpu_seconds) - 60 * 10 * 8) <= 60 * 8


async def test_a_leader_whose_clock_was_an_hour_ahead_makes_the_next_one_count_no_second_twice() -> None:
    site = a_site(MONTHLY)
    await site.lead()
    site.begin(Ran("p", training(1), site.now, site.now + DAY))
    site.now += HOUR
    await site.look()
    site.now -= HOUR / 2
    await site.lead()
    site.now += HOUR
    await site.look()
    assert abs(float(site.note().gpu_seconds) - 1.5 * HOUR) < 2


@pytest.mark.parametrize(
    "budget",
    [
        {"gpuHours": 5, "from": "0001-01-01T00:00:00Z", "until": "2026-12-31T00:00:00Z"},
        {"gpuHours": 5, "from": "2026-01-01T00:00:00Z", "until": "9999-12-31T23:59:59-12:00"},
    ],
)
def test_a_time_beyond_the_calendar_is_refused(budget: dict[str, Any]) -> None:
    problem = a_site(budget).quota().problem
    assert problem is not None
    assert problem.id == "no-time"


async def test_a_tenant_whose_hours_cannot_be_noted_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    site = a_site(MONTHLY)
    leader = await site.lead()
    leader.events = None  # type: ignore[assignment] - a defect of ours
    site.begin(Ran("p", training(8), site.now, site.now + 400 * DAY))
    site.now += 600 * HOUR
    await leader.look()
    assert "GPU-hours not noted" in caplog.text
