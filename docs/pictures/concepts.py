"""Draws the way of a pod and the rows of a tenant (docs/concepts.md), and the slots of an account (docs/ledger.md)."""

from collections.abc import Iterable, Iterator

from pictures.palettes import PALETTES, in_the_dark
from pictures.svg import arrow, box, drawing, text

INK = PALETTES["light"]
WIDTH, CARD, GAP = 968, 168, 32
TRAINING, SERVING, BATCH, INTERACTIVE = range(4)
WAY = (
    ("kubectl, a controller", ("applies a Job,", "makes its pod")),
    ("mutate", ("which tier? which hook?", "patches the pod")),
    ("validate", ("ceiling, then quota:", "books, or refuses")),
    ("scheduler", ("places it; evicts lower", "tiers if GPUs run short")),
    ("the evicted pod", ("preStop asks it to save,", "and its grace is enough")),
)
ROWS = (
    ("total", 16, ((TRAINING, 4), (BATCH, 6))),
    ("gpu-training", 6, ((TRAINING, 4),)),
    ("h100", 4, ((TRAINING, 4),)),
)
"""The rows of the tenant in docs/quota.md, and what one training run of 4 H100s and 6 batch pods hold of each."""

SLOTS = (
    ("pods that run by themselves", 3, (("sum of 3 pods", 3, True, 0, 0),)),
    (
        "gang bert",
        6,
        (("declares 6 GPUs", 6, False, 0, 0), ("4 pods run", 4, True, 12, 1), ("bert-4", 1, False, 112, 1)),
    ),
    ("a replacement", 2, (("preempted, still ends", 2, True, 0, 0), ("its next pod", 2, False, 0, 1))),
    ("a ResourceClaim", 2, (("train-0 shares it", 2, True, 0, 0), ("train-1 shares it", 2, True, 0, 1))),
)
"""Slots on one row: the GPUs that each counts, and its entries: their GPUs, whether they are seen, and positions."""


def way_of_a_pod() -> str:
    """Draw the way of a pod from `kubectl apply` to an eviction."""
    shapes = [in_the_dark(PALETTES["light"], PALETTES["dark"])]
    for place, (head, lines) in enumerate(WAY):
        x = place * (CARD + GAP)
        shapes += _card(x, head, lines, ours=head in {"mutate", "validate"})
        if place:
            shapes.append(arrow(x - GAP + 4, 80, x - 4, 80, INK.faint))
    shapes.append(text(CARD + GAP, 24, "gpu-tiers, asked by the API server", INK.tiers[TRAINING], size=12, bold=True))
    title = "A pod is patched, checked and booked before it is stored; the scheduler then goes by its priority"
    return drawing(WIDTH, 136, title, shapes, said=". ".join(f"{head}: {' '.join(lines)}" for head, lines in WAY))


def _card(x: float, head: str, lines: Iterable[str], *, ours: bool) -> Iterator[str]:
    yield box(x, 36, CARD, 88, INK.paper, INK.tiers[TRAINING] if ours else INK.line)
    yield text(x + 12, 60, head, INK.ink, bold=True)
    for number, line in enumerate(lines):
        yield text(x + 12, 84 + number * 20, line, INK.faint, size=12)


def rows_of_a_tenant() -> str:
    """Draw a square for each GPU that a row allows, filled if a pod uses it."""
    shapes = [in_the_dark(PALETTES["light"], PALETTES["dark"])]
    for row, (name, allowed, used) in enumerate(ROWS):
        y = 12 + row * 52
        shapes.append(text(4, y + 24, name, INK.ink, bold=True))
        tiers = [tier for tier, gpus in used for _ in range(gpus)]
        for gpu in range(allowed):
            colour = INK.tiers[tiers[gpu]] if gpu < len(tiers) else "none"
            shapes.append(box(132 + gpu * 44, y, 36, 36, colour, INK.line if colour == "none" else colour))
        shapes.append(text(132 + allowed * 44 + 6, y + 24, f"{len(tiers)}/{allowed}", INK.faint))
    title = "A training run of 4 H100s counts on three rows at once: the total, its tier, its model of GPU"
    said = ". ".join(f"{name}: {sum(gpus for _, gpus in used)} of {allowed}" for name, allowed, used in ROWS)
    return drawing(WIDTH, 160, title, shapes, said=said)


def slots_of_an_account() -> str:
    """Draw slots with their entries, a square for each GPU, and the count of each slot."""
    shapes = [in_the_dark(PALETTES["light"], PALETTES["dark"])]
    for place, (name, counts, entries) in enumerate(SLOTS):
        x = 4 + place * 242
        shapes += [box(x, 4, 232, 176, INK.paper, INK.line), text(x + 12, 28, name, INK.ink, bold=True)]
        for words, gpus, seen, left, line in entries:
            at, top = x + 12 + left, 54 + line * 46
            shapes.append(text(at, top, words, INK.faint, size=11))
            colour = INK.tiers[TRAINING] if seen else "none"
            squares = (
                box(at + gpu * 22, top + 6, 18, 18, colour, INK.tiers[TRAINING], dashed=not seen) for gpu in range(gpus)
            )
            shapes += squares
        shapes.append(text(x + 12, 166, f"counts {counts}", INK.ink, bold=True))
    title = "A slot counts the larger of its largest own entry and the sum of the slots inside it"
    sentences = (f"{name} counts {counts}: {', '.join(each[0] for each in entries)}" for name, counts, entries in SLOTS)
    return drawing(WIDTH + 12, 184, title, shapes, said=". ".join(sentences))
