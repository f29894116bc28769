"""Draws what `make preemption-demo` measured, on one axis of time. `python docs/generate.py` writes the file."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from demonstration.cases import CASES, Case
from demonstration.figures import Figures, Measured
from pictures.flags import INDENT, SIZE, Flag, rows, width
from pictures.palettes import PALETTES, in_the_dark
from pictures.svg import box, drawing, text

LIGHT = PALETTES["light"]
DARK = replace(PALETTES["dark"], paper=PALETTES["dark"].on_tier)  # one colour in the light is one in the dark
TRAINING, CRITICAL = LIGHT.tiers[0], LIGHT.tiers[1]
TITLE = "One preemption and several endings: a critical pod takes the GPUs of a training run"

WIDTH, EDGE, LEFT = 968, 16, 92
BEFORE = 5
"""Seconds shown before the critical pod."""
ROW, LANE, BAR = 18, 24, 18


@dataclass(frozen=True, slots=True)
class Event:
    """A moment of a case; `lane` 0 is the training pod's, 1 the critical pod's."""

    at: float
    words: str
    lane: int


@dataclass(frozen=True, slots=True)
class Axis:
    """Seconds to pixels."""

    scale: float

    def x(self, at: float) -> float:
        """Return the x of a moment."""
        return round(LEFT + (at + BEFORE) * self.scale, 1)

    @property
    def end(self) -> float:
        """The last moment that is shown."""
        return (WIDTH - EDGE - LEFT) / self.scale - BEFORE

    def tens(self) -> range:
        """The multiples of ten seconds."""
        return range(0, int(self.end) + 1, 10)


def picture(measured: Measured) -> str:
    """The picture as an SVG file."""
    axis = axis_of(measured)
    y, blocks = 50.0, []
    for case in drawn(measured):
        block, height = _block(case, measured.cases[case.letter], axis, y)
        blocks.append(block)
        y += height
    shapes = [
        in_the_dark(LIGHT, DARK),
        box(0.6, 0.6, WIDTH - 1.2, y + 42, LIGHT.paper, LIGHT.line),
        text(EDGE, 28, TITLE, LIGHT.ink, size=16, bold=True),
        *_axis(axis, y),
        *(shape for block in blocks for shape in block),
    ]
    return drawing(WIDTH, round(y + 44), TITLE, shapes, said=said(measured))


def said(measured: Measured) -> str:
    """The picture in words."""
    return " ".join(
        f"{case.name}: {cost(measured.cases[case.letter])}. "
        + "; ".join(event.words for event in events(measured.cases[case.letter]))
        + "."
        for case in drawn(measured)
    )


def drawn(measured: Measured) -> list[Case]:
    """The cases of the picture; the table has them all."""
    return [case for case in CASES if case.drawn and case.letter in measured.cases]


def cost(figures: Figures) -> str:
    """Return its cost on one line."""
    steps = "1 step" if figures.steps_lost == 1 else f"{figures.steps_lost} steps"
    return f"{steps} lost, {figures.times.running:.1f} s until the critical pod runs"


def events(figures: Figures) -> list[Event]:
    """Return the events in their order."""
    times, step = figures.times, figures.resumed_at or 0
    happened = [
        (0.0, "critical pod asks for the GPUs", 1),
        (times.hook, "hook asks for a save", 0),
        (times.saved, "saved", 0),
        (None if times.stored == times.saved else times.stored, f"last checkpoint, step {step}", 0),
        (times.sigterm, "SIGTERM, ignored" if figures.killed else "SIGTERM", 0),
        (times.gone, f"killed at step {step + figures.steps_lost}" if figures.killed else "process gone", 0),
        (times.running, "critical pod runs", 1),
        (times.resumed, f"resumes at step {step}", 0),
    ]
    moments = [Event(at, f"{at:.1f} s\N{EN SPACE}{words}", lane) for at, words, lane in happened if at is not None]
    return sorted(moments, key=lambda event: event.at)


def axis_of(measured: Measured) -> Axis:
    """Return the widest axis with every label inside."""
    moments = [event for case in drawn(measured) for event in events(measured.cases[case.letter])]
    return Axis(min((WIDTH - EDGE - LEFT - INDENT - width(each.words)) / (each.at + BEFORE) for each in moments))


def _block(case: Case, figures: Figures, axis: Axis, y: float) -> tuple[list[str], float]:
    """One case below `y`, and its height."""
    happened = events(figures)
    flags = [Flag(axis.x(event.at), event.words) for event in happened]
    lifted = rows(flags)
    lanes = y + 34 + (max(lifted) + 1) * ROW
    shapes = [
        text(EDGE, y + 14, case.name, LIGHT.ink, size=14, bold=True),
        text(WIDTH - EDGE, y + 14, cost(figures), LIGHT.ink, size=14, bold=True, end=True),
        text(EDGE, lanes + 13, "training", LIGHT.faint, size=SIZE),
        text(EDGE, lanes + LANE + 13, "critical", LIGHT.faint, size=SIZE),
        *_grid(axis, lanes - 4, lanes + 2 * LANE),
        *_bars(figures, axis, lanes),
    ]
    for event, flag, row in zip(happened, flags, lifted, strict=True):
        shapes.append(_flag(flag, lanes - 8 - row * ROW, lanes + event.lane * LANE + BAR / 2))
    return shapes, lanes + 2 * LANE + 22 - y


def _flag(flag: Flag, y: float, foot: float) -> str:
    """A label on its stem, whose foot is a dot."""
    back = f'<rect x="{flag.x + INDENT - 2:.1f}" y="{y - 12:.1f}" width="{width(flag.words) + 2:.1f}" height="16"'
    return "".join(
        (
            '<g class="event">',
            f'<line x1="{flag.x}" y1="{y - 10:.1f}" x2="{flag.x}" y2="{foot}" stroke="{LIGHT.faint}"/>',
            f'<circle cx="{flag.x}" cy="{foot}" r="3.5" fill="{LIGHT.ink}" stroke="{LIGHT.paper}"/>',
            f'{back} fill="{LIGHT.paper}"/>',
            text(round(flag.x + INDENT, 1), y, flag.words, LIGHT.ink, size=SIZE),
            "</g>",
        )
    )


def _bars(figures: Figures, axis: Axis, y: float) -> Iterator[str]:
    """Draw which pod used the GPUs, and which one waited."""
    times = figures.times
    stored = times.gone if not figures.steps_lost or times.stored is None else times.stored
    yield _bar(axis, -BEFORE, stored, y, "trains", TRAINING)
    if stored < times.gone:
        yield _bar(axis, stored, times.gone, y, "lost", LIGHT.refused, hollow=True)
    if times.resumed is not None:
        yield _bar(axis, times.resumed, axis.end, y, "trains", TRAINING)
    yield _bar(axis, 0, times.running, y + LANE, "waits", CRITICAL, hollow=True)
    yield _bar(axis, times.running, times.ended, y + LANE, "runs", CRITICAL)


def _bar(axis: Axis, since: float, until: float, y: float, words: str, colour: str, *, hollow: bool = False) -> str:
    """Draw a stretch of time, with a word if there is room. One that began before 0 is named before it."""
    left, length = axis.x(since), round(axis.x(until) - axis.x(since), 1)
    room = axis.x(0) - left if since < 0 else length
    bar = box(left, y, length, BAR, LIGHT.paper if hollow else colour, colour, dashed=hollow)
    if room < width(words) + 12:
        return bar
    return bar + text(left + room / 2, y + 13, words, colour if hollow else LIGHT.on_tier, size=SIZE, middle=True)


def _grid(axis: Axis, top: float, bottom: float) -> Iterator[str]:
    """A line every ten seconds."""
    for second in axis.tens():
        x = axis.x(second)
        yield f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="{LIGHT.line}"/>'


def _axis(axis: Axis, y: float) -> Iterator[str]:
    """The number of every ten seconds, and what they count."""
    for second in axis.tens():
        yield text(axis.x(second), y + 10, f"{second} s", LIGHT.faint, size=SIZE, middle=True)
    yield text(LEFT, y + 29, "seconds since the critical pod was created", LIGHT.faint, size=SIZE)
