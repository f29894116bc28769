"""Where the evidence for a workload type comes from."""

from webhook.policy.evidence import Evidence

NOTHING = "nothing"

TEXTS = {
    "by its kind": "kind",
    "by the fields of": "fields",
    "by its label": "label",
    "by the usual use of": "usual use",
    "a guess from its command": "guess: command",
    "a guess from its variable": "guess: variable",
    "a guess from its kind": "guess: kind",
    "a guess from its name and image": "guess: name and image",
    "a guess from its name": "guess: name",
    "a guess from its image": "guess: image",
    "a guess from its probe": "guess: probe",
    "a guess from its port": "guess: port",
    "a guess from its restartPolicy": "guess: restartPolicy",
}
"""Sources by how the text of their evidence begins; one text that begins as another does comes before it."""

SOURCES = (*TEXTS.values(), NOTHING)


def source_of(evidence: Evidence | None) -> str:
    """One of SOURCES; the evidence's own text where it begins as none of theirs."""
    if evidence is None:
        return NOTHING
    text = str(evidence).removeprefix(f"{evidence.type}, ")
    return next((source for begins, source in TEXTS.items() if text.startswith(begins)), text)
