"""The plan of a run, made from one seed: who wants which pods, and what goes wrong when."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

TIERS = ("gpu-training", "gpu-batch")
TENANT_LABEL = "example.com/tenant"
REFUSED_LABEL = "example.com/refused-by-another"
STORM_SECONDS = 10.0
LONGEST_PAUSE = 6.0
LONGEST_LIFE = 4.0


@dataclass(frozen=True)
class Wish:
    """A pod that somebody wants. `lives` is the seconds after which it is deleted; None is for ever.

    `gang` is the Job that it is of. `by_dra`: its GPUs come by DRA, and it is wanted again where it is evicted. All
    others wait for a node that does not exist. `early`: it has its node before the storm begins.
    """

    namespace: str
    name: str
    tier: str
    gpus: int
    at: float = 0
    refused_by_another: bool = False
    lives: float | None = None
    gang: str = ""
    by_dra: bool = False
    early: bool = False


@dataclass(frozen=True)
class Team:
    """A tenant: its namespaces, and its rows by tier; None is the total. `holds`: what is over them waits."""

    name: str
    namespaces: tuple[str, ...]
    rows: Mapping[str | None, int] = field(hash=False)
    holds: bool = False


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong: a deed of `deeds.py`, on a replica's number; None is whoever leads at that moment."""

    at: float
    deed: str
    replica: int | None = None
    seconds: float = 0
    tenant: str = ""


@dataclass(frozen=True)
class Plan:
    """One run."""

    teams: tuple[Team, ...]
    wishes: tuple[Wish, ...]
    faults: tuple[Fault, ...] = field(default=())

    @property
    def namespaces(self) -> list[str]:
        """Return the namespaces of all tenants."""
        return [namespace for team in self.teams for namespace in team.namespaces]

    def members(self, wish: Wish) -> list[Wish]:
        """Return the pods of its gang."""
        return [each for each in self.wishes if (each.namespace, each.gang) == (wish.namespace, wish.gang)]

    def team_of(self, namespace: str) -> Team:
        """Return the tenant of a namespace."""
        return next(team for team in self.teams if namespace in team.namespaces)


def calm(creates: int, **gpus: int) -> Plan:
    """Return that many creates of one GPU at once in each tenant with that many GPUs; nothing goes wrong."""
    teams = tuple(Team(name, (f"{name}-0",), {None: hard}) for name, hard in gpus.items())
    spaces = [space for team in teams for space in team.namespaces]
    wishes = (Wish(space, f"pod-{number}", "gpu-batch", 1) for number in range(creates) for space in spaces)
    return Plan(teams, tuple(wishes))


def storm(name: str, seed: int, replicas: int, creates: int = 1000, devices: int = 0) -> Plan:
    """Half of the creates on one tenant, half on five others, of whose quotas some are too small; faults meanwhile.

    Where pods wait, gangs come as well. With `devices` one more tenant has pods of two tiers that want them.
    """
    dice = random.Random(seed)  # noqa: S311 - to be repeated
    shares = {"hot": (creates // 2, 0.5, 0.9)}
    shares |= {f"cool-{number}": (creates // 10, 0.5, 1.6) for number in range(5)}
    teams = {_team(f"{name}-{suffix}", dice, *share): share[0] for suffix, share in shares.items()}
    wishes = [wish for team, share in teams.items() for wish in _wishes(team, share, dice)]
    wishes += [wish for team, share in teams.items() if team.holds for wish in _gangs(team, share // 20 + 1, dice)]
    if devices:
        team = Team(f"{name}-devices", (f"{name}-devices-0",), {None: devices * 5 // 4})
        teams[team] = 0
        wishes += _device_wishes(team, devices, dice)
    faults = [*_faults(replicas, dice), Fault(dice.uniform(2, STORM_SECONDS), "empty a status", tenant=f"{name}-hot")]
    return Plan(tuple(teams), tuple(wishes), tuple(sorted(faults, key=lambda each: each.at)))


def _team(name: str, dice: random.Random, creates: int, least: float, most: float) -> Team:
    """A quota of so many GPUs a create; their people want 1.1, without what another webhook refuses."""
    total = round(creates * dice.uniform(least, most))
    rows = {None: total, "gpu-training": round(total * dice.uniform(0.3, 0.7))}
    return Team(name, (f"{name}-0", f"{name}-1"), rows, holds=dice.random() < 0.5)


def _wishes(team: Team, creates: int, dice: random.Random) -> Iterator[Wish]:
    """Half of them come at once, the others during the storm; a quarter another webhook refuses."""
    for number in range(creates):
        yield Wish(
            namespace=dice.choice(team.namespaces),
            name=f"pod-{number}",
            tier=dice.choice(TIERS),
            gpus=dice.choice((1, 1, 1, 1, 2, 3)),
            at=0 if number % 2 else dice.uniform(0, STORM_SECONDS),
            refused_by_another=dice.random() < 0.25,
            lives=dice.uniform(0, LONGEST_LIFE) if dice.random() < 0.1 else None,
        )


def _device_wishes(team: Team, devices: int, dice: random.Random) -> Iterator[Wish]:
    """Pods of the low tier for all devices, then half as many of the high tier, more than the quota allows."""
    for number in range(devices):
        yield Wish(team.namespaces[0], f"low-{number}", TIERS[1], 1, by_dra=True, early=True)
    for number in range(devices // 2):
        at = dice.uniform(0, STORM_SECONDS / 2)
        yield Wish(team.namespaces[0], f"high-{number}", TIERS[0], 1, at, by_dra=True)


def _gangs(team: Team, number: int, dice: random.Random) -> Iterator[Wish]:
    """Jobs of two to four pods, which could all run at once."""
    for job in range(number):
        namespace, tier, gpus, pods = dice.choice(team.namespaces), dice.choice(TIERS), dice.choice((1, 2)), range(4)
        at, size = dice.uniform(0, STORM_SECONDS), dice.randint(2, len(pods))
        if size * gpus <= min(hard for row, hard in team.rows.items() if row in (None, tier)):
            yield from (
                Wish(namespace, f"gang-{job}-{index}", tier, gpus, at, gang=f"gang-{job}") for index in pods[:size]
            )


def _faults(replicas: int, dice: random.Random) -> Iterator[Fault]:
    """The leader and another are killed, the leader and another are paused, and the API server is killed."""
    for victim in (None, dice.randrange(replicas)):
        yield Fault(dice.uniform(0.5, STORM_SECONDS), "kill", victim)
    for victim in (None, dice.randrange(replicas)):
        yield Fault(dice.uniform(0.5, STORM_SECONDS), "pause", victim, dice.uniform(0.5, LONGEST_PAUSE))
    yield Fault(dice.uniform(2, STORM_SECONDS), "restart the API server")
