"""The API server's clock, by the Date of its answers, on a machine whose own clock is wrong."""

from dataclasses import dataclass
from email.utils import formatdate

import pytest

from webhook.kube.connection import ServerClock

TRUE = 1_796_000_000.4


@dataclass
class Machine:
    """Its monotonic clock, and a wall clock that is an hour ahead."""

    passed: float = 0.0

    def monotonic(self) -> float:
        return 50.0 + self.passed

    def wall(self) -> float:
        return TRUE + self.passed + 3600

    def ask(self, clock: ServerClock, takes: float = 0.02, server_is: float = 0.0) -> None:
        """One request: the server writes its Date halfway."""
        sent = self.monotonic()
        self.passed += takes / 2
        date = formatdate(int(TRUE + self.passed + server_is), usegmt=True)
        self.passed += takes / 2
        clock.note(date, sent)


def a_clock(machine: Machine) -> ServerClock:
    return ServerClock(machine.monotonic, machine.wall)


def test_an_hour_ahead_counts_as_the_api_server_does_from_the_first_answer() -> None:
    machine = Machine()
    clock = a_clock(machine)
    machine.ask(clock)
    assert clock.now() == pytest.approx(TRUE + machine.passed, abs=0.6)


def test_answers_at_any_part_of_a_second_narrow_it_to_some_hundredths() -> None:
    machine = Machine()
    clock = a_clock(machine)
    for nth in range(60):
        machine.ask(clock)
        machine.passed += 1 + nth * 0.017
    assert clock.now() == pytest.approx(TRUE + machine.passed, abs=0.06)


def test_a_server_whose_clock_was_set_is_followed() -> None:
    machine = Machine()
    clock = a_clock(machine)
    machine.ask(clock)
    machine.passed += 10
    machine.ask(clock, server_is=-30)
    assert clock.now() == pytest.approx(TRUE + machine.passed - 30, abs=0.6)


@pytest.mark.parametrize("date", [None, "", "yesterday"])
def test_an_answer_without_a_time_changes_nothing(date: str | None) -> None:
    machine = Machine()
    clock = a_clock(machine)
    clock.note(date, machine.monotonic())
    assert clock.now() == machine.wall()
