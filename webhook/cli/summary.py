"""The end of a review: how many objects, how their types were told, and which of them a label would settle."""

from collections import Counter
from collections.abc import Iterator, Sequence

from webhook.cli.finding import Finding
from webhook.policy.values.tier_policy import Grade

_SETTLED_BY_A_LABEL = ("[guess-held-back]", "[type-unknown]")


def summary(findings: Sequence[Finding], *, tenants: bool) -> Iterator[str]:
    """Its lines; of one object there are none, since its finding says it all. `tenants`: whether any were given."""
    if len(findings) == 1:
        return
    ours = [each for each in findings if each.tiered or not each.allowed]
    refused = [each for each in findings if not each.allowed]
    tiered, alone = len(ours) - len(refused), len(findings) - len(ours)
    yield f"{len(findings)} objects: {tiered} get a tier, {len(refused)} refused, {alone} left alone"
    if ours:
        yield f"types: {_grades(ours)}"
    yield from (f"refused: {_name(each)}" for each in refused)
    if ours and not tenants:
        yield "no ceiling and no quota was checked: no TenantQuota was given (--tenants)"
    unsettled = [(each, warning) for each in findings for warning in each.warnings if _settles(warning)]
    if unsettled:
        yield f"{len({id(each) for each, _ in unsettled})} would profit from a label:"
    yield from (f"  {_name(each)}: {warning}" for each, warning in unsettled)


def _grades(findings: Sequence[Finding]) -> str:
    counts = Counter(each.evidence.grade for each in findings if each.evidence)
    told = [f"{counts[grade]} {grade.name.lower()}" for grade in sorted(Grade, reverse=True)]
    return ", ".join((*told, f"{len(findings) - counts.total()} unknown"))


def _settles(warning: str) -> bool:
    return warning.startswith(_SETTLED_BY_A_LABEL)


def _name(finding: Finding) -> str:
    return f"{finding.document.kind} {finding.document.namespace}/{finding.document.name}"
