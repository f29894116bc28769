"""The scores of the labelled manifests, as text."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.workloads.scoring import PLACES, Scored, share
from tests.workloads.sources import GRADE_OF, SOURCES

TYPES = ("training", "serving", "batch", "interactive", "other")


def confusion(results: Iterable[Scored]) -> str:
    """Rows what it is, columns what was said."""
    counts = Counter((each.case.type, each.said) for each in results)
    head = f"{'is / said':12}" + "".join(f"{name:>12}" for name in TYPES)
    rows = [f"{is_:12}" + "".join(f"{counts[is_, said] or '.':>12}" for said in TYPES) for is_ in TYPES]
    return "\n".join((head, *rows))


def precision(results: Sequence[Scored]) -> str:
    """Rows where the evidence came from, columns how many were told by it and how many of those right."""
    by_source = {source: [each for each in results if each.source == source] for source in SOURCES}
    head = f"{'told by':22}{'grade':>8}{'told':>8}{'right':>8}{'precision':>12}"
    return "\n".join((head, *(_row(source, found) for source, found in by_source.items() if found)))


def _row(source: str, found: Sequence[Scored]) -> str:
    grade, right = GRADE_OF.get(source, "proven"), sum(each.right for each in found)
    return f"{source:22}{grade:>8}{len(found):>8}{right:>8}{share(found):>12.1%}"


def tiers(results: Iterable[Scored]) -> str:
    """Rows the type it is, columns how many got the tier of that type, a lower one, a higher one."""
    counts = Counter((each.case.type, each.place) for each in results)
    head = f"{'is':12}" + "".join(f"{place:>8}" for place in PLACES.values())
    rows = [f"{is_:12}" + "".join(f"{counts[is_, place] or '.':>8}" for place in PLACES.values()) for is_ in TYPES[:-1]]
    return "\n".join((head, *rows))
