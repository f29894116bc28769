"""Values that bench/creates.py measures and stores in a file, and the goals, which are ratios of them."""

import statistics
from dataclasses import dataclass
from pathlib import Path

import msgspec

DRY_RUN, REAL, OTHER, GANG = "GPU pods, dry run", "GPU pods", "pods without GPUs, dry run", "gangs of 64 pods"
NOTHING, QUOTA, POLICIES, GO_PAIR, ASGI_PAIR, GPU_TIERS = (
    "nothing",
    "ResourceQuota",
    "in-tree policies",
    "constant answers, Go",
    "constant answers, ASGI",
    "gpu-tiers",
)
ALONE, CROWD, WORKERS = 1, 32, 8
TENANTS = 8
LONE, JOB, MEMBER = "a lone pod", "a gang's Job", "a gang's pod"


def ours(replicas: int, what: str) -> str:
    """The name of a case of gpu-tiers."""
    return f"{replicas} replica{'s' if replicas > 1 else ''}, {what}"


def tenants(count: int) -> str:
    """Return the number in words."""
    return f"{count} tenant{'s' if count > 1 else ''}" if count else "no tenant"


@dataclass(frozen=True)
class Key:
    """The key of a figure: what is created, by how many clients, and what is installed there."""

    what: str
    clients: int
    case: str


@dataclass(frozen=True)
class Figure:
    """Creates a second, p50 and p99 of a create in milliseconds, and how many creates were told to try again."""

    key: Key
    rate: float
    p50: float
    p99: float
    again: int


@dataclass(frozen=True)
class Run:
    """One run of all cases."""

    seconds: float
    figures: list[Figure]

    def of(self, key: Key) -> Figure:
        """Return the figure of a key; StopIteration if it was not measured."""
        return next(each for each in self.figures if each.key == key)


@dataclass(frozen=True)
class Measured:
    """The values of all runs."""

    kubernetes: str
    runs: list[Run]

    def write(self, file: Path) -> None:
        """Write the values to a file, as JSON."""
        file.write_bytes(msgspec.json.encode(self) + b"\n")


def read_measured(file: Path) -> Measured:
    """Return the stored values; msgspec.ValidationError for anything else."""
    return msgspec.json.decode(file.read_bytes(), type=Measured)


@dataclass(frozen=True)
class Spread:
    """The median of all runs, the least and the most."""

    median: float
    least: float
    most: float

    def text(self, digits: int) -> str:
        """Return the median with so many digits, and the least and the most if they differ."""
        median, least, most = (f"{each:,.{digits}f}" for each in (self.median, self.least, self.most))
        return median if least == most else f"{median} ({least}\N{EN DASH}{most})"


def spread(values: list[float]) -> Spread:
    """Return the median, the least and the most of values, one of each run."""
    return Spread(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Bar:
    """A quantity: a field of a figure, or by how much it is above the same of another figure."""

    label: str
    field: str
    key: Key
    above: Key | None = None

    def value(self, run: Run) -> float:
        """Return the value in one run."""
        value = float(getattr(run.of(self.key), self.field))
        return value - getattr(run.of(self.above), self.field) if self.above else value

    def spread(self, runs: list[Run]) -> Spread:
        """Return the spread of the value over the runs."""
        return spread([self.value(run) for run in runs])


@dataclass(frozen=True)
class Goal:
    """The goal of a quantity against another one: `times` of it at least, or at most."""

    of: Bar
    against: Bar
    times: float
    at_least: bool = False

    def ratio(self, runs: list[Run]) -> Spread:
        """Return the spread of the ratio of both quantities over the runs."""
        return spread([self.of.value(run) / self.against.value(run) for run in runs])

    def is_met(self, runs: list[Run]) -> bool:
        """Return whether most runs meet the goal, by a difference, because a ratio to noise below 0 says nothing."""
        differences = [self.of.value(run) - self.times * self.against.value(run) for run in runs]
        return statistics.median(differences) * (-1 if self.at_least else 1) <= 0


@dataclass(frozen=True)
class Panel:
    """Quantities that are seen beside each other, and the goals of some."""

    title: str
    unit: str
    digits: int
    bars: tuple[Bar, ...]
    goals: tuple[Goal, ...]


def _adds(what: str, label: str, case: str, without: str = NOTHING) -> Bar:
    """Milliseconds that a create by one client takes longer than without."""
    return Bar(label, "p50", Key(what, ALONE, case), Key(what, ALONE, without))


def _crowd(field: str, replicas: int, count: int) -> Bar:
    return Bar(ours(replicas, tenants(count)), field, Key(REAL, CROWD, ours(replicas, tenants(count))))


def _gang(replicas: int, case: str) -> Bar:
    return Bar(ours(replicas, case), "rate", Key(GANG, WORKERS, ours(replicas, case)))


def _panels() -> tuple[Panel, ...]:
    quota = _adds(REAL, QUOTA, QUOTA)
    booked = [_adds(REAL, ours(each, "booking"), ours(each, tenants(1)), ours(each, tenants(0))) for each in (1, 3)]
    pairs = [_adds(DRY_RUN, each, each) for each in (POLICIES, GO_PAIR, ASGI_PAIR)]
    webhooks = _adds(DRY_RUN, GPU_TIERS, GPU_TIERS)
    in_tree, conditions = (_adds(OTHER, each, each) for each in (POLICIES, GPU_TIERS))
    rates = {(replicas, count): _crowd("rate", replicas, count) for replicas in (1, 3) for count in (0, 1, TENANTS)}
    tails = {(replicas, count): _crowd("p99", replicas, count) for count in (1, TENANTS) for replicas in (1, 3)}
    gangs = {(replicas, case): _gang(replicas, case) for replicas in (1, 3) for case in (LONE, MEMBER)}
    return (
        Panel("What is added to a GPU pod", "ms", 1, (*pairs, webhooks), (Goal(webhooks, pairs[-1], 1.25),)),
        Panel("What is added to a pod without GPUs", "ms", 2, (in_tree, conditions), (Goal(conditions, in_tree, 1.5),)),
        Panel(
            "What booking adds, one client", "ms", 1, (quota, *booked), tuple(Goal(each, quota, 2) for each in booked)
        ),
        Panel(
            "A gang's pods, 8 clients",
            "creates/s",
            0,
            tuple(gangs.values()),
            tuple(Goal(gangs[each, MEMBER], gangs[each, LONE], 1, at_least=True) for each in (1, 3)),
        ),
        Panel(
            "With and without booking, 32 clients",
            "creates/s",
            0,
            tuple(rates.values()),
            (
                *(
                    Goal(rates[each, count], rates[each, 0], 0.9, at_least=True)
                    for each in (1, 3)
                    for count in (1, TENANTS)
                ),
                *(Goal(rates[3, count], rates[1, count], 1, at_least=True) for count in (1, TENANTS)),
            ),
        ),
        Panel(
            "The slowest of 100, 32 clients",
            "ms",
            0,
            tuple(tails.values()),
            tuple(Goal(tails[3, count], tails[1, count], 1.2) for count in (1, TENANTS)),
        ),
    )


PANELS = _panels()
