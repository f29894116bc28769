"""A review as text: each finding, and at the end the counts and the objects that need attention."""

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence

import yaml
from rich.console import Console
from rich.text import Text

from webhook.admission.review import flat
from webhook.cli.manifests.documents import LeftOut
from webhook.cli.manifests.finding import Finding
from webhook.cli.manifests.inputs import is_fact
from webhook.config.yaml_text import Dumper
from webhook.objects.view import Tree, at
from webhook.policy.values.tier_policy import Grade
from webhook.sentences.sentence import sentence

_LATER = "reviewed when they are created"
UNKNOWN = f"this kind is neither in the table (docs/workloads.md) nor among the policy's kinds; its pods are {_LATER}"
UNREAD = f"how many GPUs its pods ask for is unknown; they are {_LATER}"
UNSEEN = f"its operator decides what its pods ask for; they are {_LATER}"

_REFUSED = dict.fromkeys(("invalid", "refused", "its pod refused"), "bold red")
_STYLE = {"+": "green", "-": "red", "note": "yellow", "warning": "yellow", **_REFUSED}


def as_text(finding: Finding, console: Console) -> None:
    """Write one finding for a person: tier, why, warnings or the refusal, and the changes."""
    if console.is_terminal:
        console.print(Text("\n").join(_lines(finding)), end="\n\n", soft_wrap=True)
    else:  # rich would take as long as the reviews themselves
        console.file.write("\n".join(line.plain for line in _lines(finding)) + "\n\n")


def _lines(finding: Finding) -> Iterator[Text]:
    where = "" if finding.path else f" ({finding.document.source})"
    yield Text.assemble(_plain(finding.title, "bold"), _plain(where, "dim"))
    if not finding.known and finding.parts:
        # The webhook is not asked about the object, but about each of its parts.
        yield from _refusals(finding)
        yield _plain(f"  {_unknown(finding)}; this is what its shape tells:")
        for part in finding.parts:
            yield _plain(f"  {part.path}:")
            yield from (Text("  ") + line for line in _lines(part))
        return
    if finding.verdict.assignment is None and finding.allowed:
        yield _plain(f"  left alone: {left_alone(finding)}")
        yield from (_fact("warning", each) for each in finding.warnings)
        return
    if is_fact(finding.document):
        yield from _refusals(finding)
        return
    yield from _facts(finding)
    for part in (finding, *finding.pods):
        if part.verdict.refusal is None and part.patch:
            yield from _diff(part)


def left_alone(finding: Finding) -> str:
    document = finding.document
    if is_fact(document):
        named = bool(document.metadata.get("name"))
        return "it is used to review the other objects" if named else "it has no name, so no other object can name it"
    evidence = f" ({finding.evidence})" if finding.evidence else ""
    if not finding.known:
        return f"{_unknown(finding)}{evidence}"
    if finding.elsewhere:
        return finding.asks_nothing + evidence
    if evidence:
        return f"{UNREAD if finding.warnings else UNSEEN}{evidence}"
    return finding.asks_nothing


def _unknown(finding: Finding) -> str:
    """Return why a kind without a row is left alone: it is Kubernetes' own and makes no pods, or it is unknown."""
    group = finding.document.group
    own = "." not in group or (group.endswith(".k8s.io") and not group.endswith("x-k8s.io"))
    return "its kind makes no pods" if own and not finding.parts else UNKNOWN


def _facts(finding: Finding) -> Iterator[Text]:
    assignment = finding.verdict.assignment
    yield _fact("tier", assignment.tier.name if assignment and assignment.tier else "-")
    if assignment is not None:
        yield _fact("why", f"{assignment.step}: {sentence(assignment.reason)}")
    yield _fact("type", str(finding.evidence) if finding.evidence else "unknown")
    if assignment is not None and assignment.trace:
        yield _fact("trace", " | ".join(map(sentence, assignment.trace)))
    parts = finding.pods or (finding,)
    for hook in dict.fromkeys(part.hook for part in parts if part.hook):
        where = f" in {', '.join(hook.containers)}" if hook.containers else ""
        yield _fact("hook", f"{hook.kind}{where}, {hook.grace_period_seconds} s of grace")
    for name in ("placement", "autoscaler"):
        said = dict.fromkeys(getattr(part.verdict, name) for part in parts)
        yield from (_fact(name, each) for each in said if each)
    if finding.document.placeholders:
        placeholders = ", ".join(finding.document.placeholders)
        yield _fact("note", f"{placeholders} read as its default, else as 1, because a number is needed")
    yield from (_fact("note", note) for note in finding.notes)
    yield from (_fact("warning", warning) for warning in finding.warnings)
    yield from _refusals(finding)


def _fact(name: str, text: str) -> Text:
    return Text.assemble("  ", (name, _STYLE.get(name, "")), ": ", _plain(text))


def _refusals(finding: Finding) -> Iterator[Text]:
    own, whole = finding.verdict.refusal, finding.verdict.over_quota
    yield from (_fact("invalid", sentence(each)) for each in finding.invalid)
    if own:
        yield _fact("refused", sentence(own))
    # one pod's alternatives don't help a whole workload without room
    of_pods = (pod.verdict.refusal for pod in finding.pods if not (whole and pod.verdict.over_quota))
    for refusal in dict.fromkeys(of_pods):
        if refusal and not (own and own.same_elsewhere(refusal)):  # the workload's own refusal has the template's path
            yield _fact("its pod refused", sentence(refusal))


def _plain(text: str, style: str = "") -> Text:
    """Return the text with spaces for control characters, because a manifest must not control a terminal."""
    return Text(flat(text), style)


def _diff(finding: Finding) -> Iterator[Text]:
    trees = map(_without_long_notes, (finding.document.tree, finding.after))
    written = (yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=4096) for each in trees)
    before, after = (each.splitlines() for each in written)
    what = f"{finding.count} x pod of {finding.path}" if finding.path else "this object"
    yield _plain(f"  would change in {what}:")
    for line in list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]:
        if not line.startswith("@@"):
            yield _plain(f"    {line}", _STYLE.get(line[0], ""))


LONGEST_NOTE = 40
"""The most lines of an annotation that are shown; `-o json` and `-o yaml` have all."""


def _without_long_notes(tree: Tree) -> Tree:
    """Replace long annotations by their number of lines, because the listener's text would fill twenty pages."""
    notes = at(tree, "metadata.annotations")
    if not isinstance(notes, dict):
        return tree
    sizes = {key: str(text).count("\n") for key, text in notes.items()}
    short = {key: f"({size:,} lines)" for key, size in sizes.items() if size > LONGEST_NOTE}
    return {**tree, "metadata": {**tree["metadata"], "annotations": notes | short}}


class _Dumper(Dumper):
    """YAML in the order of the object, with scripts as blocks and without aliases."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


_SETTLED_BY_A_LABEL = ("guess-too-weak", "type-unknown")
_NOT_COUNTED = ("gpu-not-counted", "runtime-unread", "claim-unread")


def summary(
    findings: Sequence[Finding], left_out: Sequence[LeftOut] = (), *, tenants: bool, shown: bool = True
) -> Iterator[str]:
    """Yield the lines of the summary. For a single object that is `shown`, leave out the counts and lists of objects.

    `tenants`: whether any TenantQuota was given.
    """
    whole = len(findings) > 1 or not shown
    if whole:
        refused = [each for each in findings if not each.allowed]
        tiered = [each for each in findings if each.allowed and each.tiered]
        alone = len(findings) - len(tiered) - len(refused)
        objects, get = "object" if len(findings) == 1 else "objects", "gets" if len(tiered) == 1 else "get"
        yield f"{len(findings)} {objects}: {len(tiered)} {get} a tier, {len(refused)} refused, {alone} left alone"
        if tiered:
            counts = Counter(each.evidence.grade for each in tiered if each.evidence)
            grades = [f"{counts[grade]} {grade.name.lower()}" for grade in sorted(Grade, reverse=True)]
            yield f"types of those with a tier: {', '.join((*grades, f'{len(tiered) - counts.total()} unknown'))}"
        yield from (f"refused: {_name(each)}" for each in refused)
    if not tenants and any(each.tiered or not each.allowed for each in findings):
        yield "no ceiling and no quota was checked: no TenantQuota was given (--tenants)"
    if whole:
        yield from _listed("would profit from a label", findings, _SETTLED_BY_A_LABEL)
        yield from _listed("may hold GPUs that are not counted", findings, _NOT_COUNTED)
    for what in ("left out", "broken"):
        its = [each for each in left_out if each.what == what]
        if its:
            yield f"{len(its)} {what}:"
        yield from (f"  {each}" for each in its)


def _listed(what: str, findings: Sequence[Finding], ids: Sequence[str]) -> Iterator[str]:
    found = [(each, warning) for each in findings for warning in each.shown_warnings if warning.id in ids]
    if found:
        yield f"{len({id(each) for each, _ in found})} {what}:"
    yield from (f"  {_name(each)}: {sentence(warning)}" for each, warning in found)


def _name(finding: Finding) -> str:
    return f"{finding.title} ({finding.document.source})"
