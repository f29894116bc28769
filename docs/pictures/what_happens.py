"""Draws what happens to GPU pods, from their creation to an eviction. `python docs/generate.py` writes the files."""

from collections.abc import Iterator

from pictures.svg import Palette, arrow, box, drawing, text

TITLE = (
    "A GPU pod is created; gpu-tiers gives it a tier, a checkpoint hook or a refusal; when GPUs run short the "
    "scheduler evicts the lower tier, and what is evicted saves first"
)
WIDTH, HEIGHT = 968, 326
COLUMN, GAP, TOP, EDGE = 216, 32, 44, 4
TRAINING, _, BATCH, INTERACTIVE = range(4)


def picture(palette: Palette) -> str:
    """The picture as an SVG file."""
    columns = (_pods, _answers, _eviction, _save)
    heads = ("1  Pods ask for GPUs", "2  gpu-tiers answers", "3  GPUs run short", "4  The evicted saves first")
    shapes: list[str] = []
    for index, (head, column) in enumerate(zip(heads, columns, strict=True)):
        x = EDGE + index * (COLUMN + GAP)
        shapes.append(text(x, 22, head, palette.ink, size=15, bold=True))
        shapes += column(x, palette)
        if index:
            shapes.append(arrow(x - GAP + 5, TOP + 130, x - 5, TOP + 130, palette.faint))
    return drawing(WIDTH, HEIGHT, TITLE, shapes)


def _card(x: float, y: float, lines: tuple[str, str], palette: Palette, *, dashed: bool = False) -> Iterator[str]:
    yield box(x, y, COLUMN, 54, palette.paper, palette.line, dashed=dashed)
    yield text(x + 12, y + 23, lines[0], palette.ink, bold=True)
    yield text(x + 12, y + 42, lines[1], palette.faint, size=12)


def _pods(x: float, palette: Palette) -> Iterator[str]:
    cards = (
        ("JobSet pretrain", "training, 4 GPUs"),
        ("JobSet sweep", "a search that can wait, 4 GPUs"),
        ("Notebook", "idle most of the day, 1 GPU"),
        ("One job too many", "over the tenant's quota"),
    )
    for row, lines in enumerate(cards):
        yield from _card(x, TOP + row * 68, lines, palette)


def _answers(x: float, palette: Palette) -> Iterator[str]:
    answers = (
        (TRAINING, "gpu-training", "1000", "and a checkpoint hook"),
        (BATCH, "gpu-batch", "400", "and a checkpoint hook"),
        (INTERACTIVE, "gpu-interactive", "200", "evicts nobody, waits its turn"),
    )
    for row, (tier, name, value, more) in enumerate(answers):
        y = TOP + row * 68
        yield box(x, y, COLUMN, 54, palette.paper, palette.line)
        yield _chip(x + 10, y + 8, f"{name}  {value}", tier, palette)
        yield text(x + 12, y + 46, more, palette.faint, size=12)
    y = TOP + 3 * 68
    yield box(x, y, COLUMN, 54, palette.paper, palette.refused, dashed=True)
    yield text(x + 12, y + 23, "refused, in one sentence:", palette.refused, bold=True)
    yield text(x + 12, y + 42, "6 of 6 GPUs; would fit: gpu-batch", palette.faint, size=12)


def _chip(x: float, y: float, words: str, tier: int, palette: Palette) -> str:
    colour = palette.tiers[tier]
    width = 20 + 7.2 * len(words)
    return box(x, y, width, 24, colour, colour) + text(x + 10, y + 17, words, palette.on_tier, bold=True)


def _node(x: float, y: float, label: str, tier: int, palette: Palette, *, leaving: bool) -> Iterator[str]:
    """Draw a node with four GPUs that pods of one tier use."""
    colour = palette.tiers[tier]
    yield box(x, y, COLUMN, 84, palette.paper, palette.line)
    yield text(x + 12, y + 21, label, palette.faint, size=12)
    for gpu in range(4):
        left = x + 12 + gpu * 49
        yield box(left, y + 32, 44, 40, "none" if leaving else colour, colour, dashed=leaving)
        yield text(left + 22, y + 57, "GPU", colour if leaving else palette.on_tier, size=12, bold=True, middle=True)


def _eviction(x: float, palette: Palette) -> Iterator[str]:
    yield _chip(x + 42, TOP + 4, "pretrain arrives", TRAINING, palette)
    yield arrow(x + COLUMN / 2, TOP + 34, x + COLUMN / 2, TOP + 60, palette.tiers[TRAINING])
    yield from _node(x, TOP + 66, "sweep has to go", BATCH, palette, leaving=True)
    for row, line in enumerate(
        (
            "The scheduler evicts lower tiers,",
            "never an equal one.",
            "The notebook evicts nobody (Never);",
            "every other tier may evict it.",
        )
    ):
        yield text(x, TOP + 178 + row * 20, line, palette.faint, size=12)


def _save(x: float, palette: Palette) -> Iterator[str]:
    steps = (
        ("preStop asks it to save", "and its grace is long enough"),
        ("it says done, or time is up", "one that can't save just ends"),
    )
    for row, lines in enumerate(steps):
        yield from _card(x, TOP + row * 68, lines, palette)
    yield arrow(x + COLUMN / 2, TOP + 56, x + COLUMN / 2, TOP + 66, palette.faint)
    yield arrow(x + COLUMN / 2, TOP + 124, x + COLUMN / 2, TOP + 138, palette.faint)
    yield from _node(x, TOP + 142, "pretrain runs", TRAINING, palette, leaving=False)
    yield text(x, TOP + 248, "sweep's controller starts it again;", palette.faint, size=12)
    yield text(x, TOP + 268, "it resumes where it saved", palette.faint, size=12)
