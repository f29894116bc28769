"""The end of a review: how many objects, how their types were told, and which of them need a look."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from webhook.cli.finding import Finding
from webhook.cli.left_out import LeftOut
from webhook.policy.values.tier_policy import Grade

_SETTLED_BY_A_LABEL = ("[guess-held-back]", "[type-unknown]")
_NOT_COUNTED = ("[gpu-not-counted]", "[runtime-unread]")
_GPUS_UNREAD = "so its GPUs are not counted"


def summary(
    findings: Sequence[Finding], left_out: Sequence[LeftOut] = (), *, tenants: bool, shown: bool = True
) -> Iterator[str]:
    """Its lines; of one object that is `shown` there are none, since its finding says it all.

    `tenants`: whether any were given.
    """
    if len(findings) > 1 or not shown:
        yield from _of_many(findings, tenants=tenants)
    if left_out:
        yield f"{len(left_out)} left out:"
    yield from (f"  {each}" for each in left_out)


def _of_many(findings: Sequence[Finding], *, tenants: bool) -> Iterator[str]:
    refused = [each for each in findings if not each.allowed]
    unasked = [each for each in findings if each.unasked]
    tiered = [each for each in findings if each.allowed and each.known and each.tiered]
    alone = len(findings) - len(tiered) - len(refused) - len(unasked)
    objects, get = "object" if len(findings) == 1 else "objects", "gets" if len(tiered) == 1 else "get"
    count = f"{len(findings)} {objects}: {len(tiered)} {get} a tier, {len(refused)} refused, {alone} left alone"
    yield f"{count}, {len(unasked)} not asked" if unasked else count
    if tiered:
        yield f"types of those with a tier: {_grades(tiered)}"
    yield from (f"refused: {_name(each)}" for each in refused)
    if (tiered or refused) and not tenants:
        yield "no ceiling and no quota was checked: no TenantQuota was given (--tenants)"
    yield from _listed("would profit from a label", findings, _settles)
    yield from _listed("may hold GPUs that are not counted", findings, _uncounted)


def _grades(findings: Sequence[Finding]) -> str:
    counts = Counter(each.evidence.grade for each in findings if each.evidence)
    told = [f"{counts[grade]} {grade.name.lower()}" for grade in sorted(Grade, reverse=True)]
    return ", ".join((*told, f"{len(findings) - counts.total()} unknown"))


def _listed(what: str, findings: Sequence[Finding], concerns: Callable[[str], bool]) -> Iterator[str]:
    """The warnings that concern this, each with its object."""
    found = [(each, warning) for each in findings for warning in each.warnings if concerns(warning)]
    if found:
        yield f"{len({id(each) for each, _ in found})} {what}:"
    yield from (f"  {_name(each)}: {warning}" for each, warning in found)


def _settles(warning: str) -> bool:
    return warning.startswith(_SETTLED_BY_A_LABEL)


def _uncounted(warning: str) -> bool:
    return warning.startswith(_NOT_COUNTED) or _GPUS_UNREAD in warning


def _name(finding: Finding) -> str:
    return f"{finding.title} ({finding.document.source})"
