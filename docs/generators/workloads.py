"""Makes docs/workloads.md of the table of kinds and of the guesses; decides nothing about them."""

from collections.abc import Iterator

from generators.tables import code, page, table
from webhook.policy.guesses import GUESSES, LONGEST
from webhook.policy.kinds import KINDS, Row, Templates
from webhook.policy.kinds.labels import WELL_KNOWN_LABELS

_WHY = """\
Why: the type of a workload decides its tier where nobody named one, so it must be plain what makes us say so. A kind
that *is* something (a PyTorchJob trains) proves it. A general launcher (a Job, a JobSet) is only *usually* something:
that chooses a tier and binds nobody. Names and images are guesses, and are called so."""

_ORDER = """\
The order of trust: the kind or the fields of any owner that prove it, a label that only pods of one type bear, then
what the pod runs, is packed in and is called (guesses), and the usual use of the outermost owner where no guess says
otherwise. [What each may do](decisions/evidence.md)."""

_KINDS = """\
## Kinds

Pods of any other kind get a tier too; only their type has to come from a label or a guess, and the object itself is
not checked when it is applied."""

_TEMPLATES = """\
## Pods of a workload

Where the webhook finds a workload's pod templates, and how many pods each makes: this is what a workload is checked
for when it is applied."""

_LABELS = """\
## Labels without a kind

Charts and spawners write these on the pods that they make."""

_GUESSES = f"""\
## Guesses

The first pattern that matches decides. A guess may lower a workload below its default tier and never raises it above,
unless the policy says `guessesMayRaise`. Of each text the first {LONGEST} characters are searched."""


def workloads() -> str:
    """The page, whole."""
    return page(
        "Workloads",
        "`webhook/policy/kinds/` and `webhook/policy/guesses.py`",
        _WHY,
        _ORDER,
        _KINDS,
        table(("kind", "API group", "type", "labels on its pods"), (_kind(row) for row in KINDS)),
        _TEMPLATES,
        table(("kind", "pod template", "pods"), (_place(row, each) for row in KINDS for each in row.templates)),
        _LABELS,
        table(("label", "type"), _labels()),
        _GUESSES,
        table(("looks at", "pattern", "type"), _guesses()),
    )


def _kind(row: Row) -> tuple[str, str, str, str]:
    group = f"[{row.group or 'core'}]({row.source})"
    labels = (code(f"{key}={value}" if value else key) for key, value in row.labels.items())
    return row.kind, group, _type(row), ", ".join(labels)


def _type(row: Row) -> str:
    if row.type:
        return f"{row.type}, proven"
    told = [f"{kind} where {code(field)} is filled" for field, kind in row.fields]
    if row.usual:
        told.append(f"{row.usual}, usually; first its {', '.join(row.before_usual)}")
    return "; ".join(told) or "whatever its pods are"


def _place(row: Row, templates: Templates) -> tuple[str, str, str]:
    place = ".".join(filter(None, (templates.holder, templates.path)))
    return row.kind, code(place) or "the object itself", (templates.count.__doc__ or "").strip().rstrip(".")


def _labels() -> Iterator[tuple[str, str]]:
    for key, value, kind, source in WELL_KNOWN_LABELS:
        yield f"[{code(f'{key}={value}' if value else key)}]({source})", kind


def _guesses() -> Iterator[tuple[str, str, str]]:
    for source, rows in GUESSES.items():
        yield from ((source, code(pattern.pattern), kind) for pattern, kind in rows)
