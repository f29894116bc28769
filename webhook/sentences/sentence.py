"""Makes a sentence of a value: of a refusal, of a warning, of the reason for a tier."""

from collections.abc import Mapping
from decimal import Decimal

from webhook.objects.data_files import data_file
from webhook.objects.quantities import written, written_gpus
from webhook.objects.refusal import AdmissionWarning, Phrase, Refusal, Refused, cut, shown

LONGEST = 120
"""Characters of a warning about a workload, with its id."""

EXCEEDED = "exceeded quota: "
"""The start of each refusal that ends when other pods of the tenant end.

Argo Workflows, Tekton, Flyte and Airflow look for these words, in lower case, in a create that is refused with 403, as
the API server's own ResourceQuotas refuse it. They create the object again later. Without the words the step fails.
"""

_REFUSALS: Mapping[str, Mapping[str, str]] = data_file(__name__, "refusals.yaml")
_WARNINGS: Mapping[str, Mapping[str, str]] = data_file(__name__, "warnings.yaml")
_PARTS: Mapping[str, Mapping[str, str]] = data_file(__name__, "parts.yaml")

REFUSALS: Mapping[str, str] = {
    each: EXCEEDED + text if section == "room" else text
    for section, texts in _REFUSALS.items()
    for each, text in texts.items()
}
WARNINGS, OF_SETTING_UP, WITHOUT_ID = (_WARNINGS[each] for each in ("workloads", "settingUp", "withoutId"))
REASONS = _PARTS["reasons"]
PARTS: Mapping[str, str] = {**REASONS, **_PARTS["others"], **_PARTS["preemption"]}
FIXES: Mapping[str, str] = data_file(__name__, "fixes.yaml")["fixes"]


_BETWEEN = {"": ", ", ";": "; ", "+": " + ", "and": " and "}
_OTHER_WARNINGS = {**OF_SETTING_UP, **WITHOUT_ID}


def sentence(phrase: Phrase) -> str:
    """Return the sentence, on one line. It ends with the id of its refusal, in brackets."""
    refusal = phrase if isinstance(phrase, Refusal) else phrase.get("refusal")
    return f"{_words(phrase)} [{refusal.id}]" if isinstance(refusal, Refusal) else _words(phrase)


def _words(phrase: Phrase) -> str:
    """Return the sentence without the id of a refusal. A refusal begins with the place of its field."""
    if isinstance(phrase, Refusal):
        field = f"{phrase.field}: " if phrase.field else ""
        return " ".join(f"{phrase.place}{field}{_filled(REFUSALS[phrase.id], phrase)}".split())
    if isinstance(phrase, AdmissionWarning):
        return f"[{phrase.id}] {warning_words(phrase)}" if has_shown_id(phrase) else warning_words(phrase)
    return _filled(PARTS[phrase.id], phrase)


def address(page: str) -> str:
    """Return the public address of a page of the docs, or its path if the package does not have one.

    `page` may end with the anchor of a section: docs/lint.md#no-leader.
    """
    from importlib import metadata  # noqa: PLC0415 - its import takes long, and few answers name a page

    urls = metadata.metadata("gpu-tiers").get_all("Project-URL") or ()
    home = dict(each.split(", ", 1) for each in urls).get("Repository")
    return f"{home}/blob/main/{page}" if home else page


def problem_text(problem: Exception) -> str:
    """Return the refusal's sentence, or the text of another exception."""
    return sentence(problem.refusal) if isinstance(problem, Refused) else str(problem)


def has_shown_id(warning: AdmissionWarning) -> bool:
    """Tell whether its id is documented, so that it is shown."""
    return warning.id in WARNINGS or warning.id in OF_SETTING_UP


def warning_words(warning: AdmissionWarning) -> str:
    """Return the words of a warning without its id. If it is about a workload, long fields are cut to fit LONGEST."""
    if warning.id in WARNINGS:
        text = WARNINGS[warning.id]
        values = {name: str(_in_text(value)) for name, value in warning.fields}
        room = LONGEST - len(f"[{warning.id}] ") - len(text.format(**dict.fromkeys(values, "")))
        fitted: dict[str, str] = {}
        shortest_first = sorted(values.items(), key=lambda each: len(each[1]))
        for left, (name, value) in zip(range(len(values), 0, -1), shortest_first, strict=True):
            fitted[name] = cut(value, room // left)
            room -= len(fitted[name])
        return text.format(**fitted)
    return _filled(_OTHER_WARNINGS[warning.id], warning)


def _filled(text: str, phrase: Phrase) -> str:
    """Return a text with the fields of a phrase filled in.

    A place `{gpus:gpus}` counts GPUs, `{hours:,}` separates thousands, and `{name:shown}` cuts a person's text.
    `{wrong:;}`, `{parts:+}` and `{see:and}` give the separator of several values, and `{tiers:choice}` leaves the
    choice if there is one.
    """
    return text.format_map({name: _in_text(value) for name, value in phrase.fields})


def _in_text(value: object) -> object:
    if type(value) is str:  # nearly always, in each review
        return _Text(value)
    if isinstance(value, Decimal):
        return _Number(value)
    if isinstance(value, Phrase):
        return _words(value)
    if isinstance(value, tuple):
        return _Listed(str(_in_text(each)) for each in value)
    return _Text(value)


class _Number:
    __slots__ = ("_number",)

    def __init__(self, number: Decimal) -> None:
        self._number = number

    def __str__(self) -> str:
        return written(self._number)

    def __format__(self, spec: str) -> str:
        if spec == ",":
            return f"{self._number.normalize():,f}"
        return written_gpus(self._number) if spec == "gpus" else written(self._number)


class _Text(str):
    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return shown(self) if spec == "shown" else str(self)


class _Listed(tuple[str, ...]):
    __slots__ = ()

    def __format__(self, spec: str) -> str:
        if spec == "choice":
            return f"one of {self:}" if len(self) > 1 else f"{self:}"
        return _BETWEEN[spec].join(self)
