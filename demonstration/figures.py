"""The costs of the cases, as values that can be stored in a file and drawn later."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec


@dataclass(frozen=True)
class Times:
    """Seconds since the critical pod was asked for; None for what did not happen."""

    hook: float | None
    """The preStop handler started."""
    saved: float | None
    """The checkpoint that it asked for was written."""
    stored: float | None
    """The last checkpoint of all was written, from which the run resumes."""
    sigterm: float | None
    gone: float
    """The training process was no more."""
    running: float
    """The critical pod's program ran."""
    ended: float
    """It had ended, and the GPUs were free again."""
    resumed: float | None
    """The Job's next pod trained. None where the Job was content with what its first had done."""


def times_since(
    asked: float,
    checkpoints: Sequence[float],
    *,
    hook: float | None,
    sigterm: float | None,
    gone: float,
    running: float,
    ended: float,
    resumed: float | None,
) -> Times:
    """Return the times in seconds since `asked`, when the critical pod was created.

    The first checkpoint after the hook began answers the hook. Checkpoints later than `gone` do not count.
    """

    def since(moment: float) -> float:
        return round(moment - asked, 3)

    written = sorted(each for each in checkpoints if each <= gone)
    answers = [each for each in written if hook and each >= hook]
    return Times(
        hook=since(hook) if hook else None,
        saved=since(answers[0]) if answers else None,
        stored=since(written[-1]) if written else None,
        sigterm=since(sigterm) if sigterm else None,
        gone=since(gone),
        running=since(running),
        ended=since(ended),
        resumed=since(resumed) if resumed else None,
    )


@dataclass(frozen=True)
class Figures:
    """One case."""

    steps_lost: int
    resumed_at: int | None
    """None where the Job had no next pod."""
    killed: bool
    """The grace was over, and the process still there."""
    times: Times
    same: bool | None = None
    """It learned the same as a run that nobody disturbed: last loss and weights. None where a run has no end."""


@dataclass(frozen=True)
class Measured:
    """One run of the cases that could be run, by their letters."""

    kubernetes: str
    cases: dict[str, Figures]

    def write(self, file: Path) -> None:
        """Write the figures to a file, as JSON."""
        file.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")


def read(file: Path) -> Measured:
    """Read a file that `write` made; msgspec.ValidationError for anything else."""
    return msgspec.json.decode(file.read_bytes(), type=Measured)
