"""Runs one history, and tells what was logged as an error meanwhile."""

import asyncio
import logging
import traceback
from collections.abc import Iterator

from tests.honest.report import Failure, Report
from tests.honest.world import History, Simulation
from tests.ledger.virtual_time import VirtualLoop


def run(history: History) -> Report:
    """Return what happened. Errors of the simulation, and errors that are logged, are failures too."""
    errors = _Errors()
    root = logging.getLogger()
    root.handlers, root.level = [errors], logging.ERROR
    worlds: list[Simulation] = []

    async def story() -> None:
        worlds.append(Simulation(history))
        try:
            await worlds[0].run()
        finally:
            await worlds[0].end()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        try:
            runner.run(story())
        except Exception as error:  # noqa: BLE001 - any error is a failure of its history
            trace = "".join(traceback.format_exception(error))
            worlds[0].report.failures.append(Failure("the simulation failed", repr(error)[:150], 0, {"trace": trace}))
    report = worlds[0].report
    report.failures += errors.failures()
    return report


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)

    def failures(self) -> Iterator[Failure]:
        for record in self._records:
            error = record.exc_info[1] if record.exc_info else None
            trace = "".join(traceback.format_exception(error)) if error else ""
            yield Failure("logged as an error", f"{record.getMessage()} {error or ''}"[:150], 0, {"trace": trace})
