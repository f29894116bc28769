"""Where the evidence for a workload type comes from."""

from webhook.policy.classification.classify import SOURCES as GUESSES
from webhook.policy.classification.evidence import Evidence, Trust

NOTHING = "nothing"
RESTART_POLICY = "guess: restartPolicy"
BY = {"its kind": "kind", "the fields of": "fields", "its label": "label", "the usual use of": "usual use"}
"""What is no guess, by how its text begins."""

SOURCES = (*BY.values(), *(f"guess: {source}" for source in GUESSES), RESTART_POLICY, NOTHING)


def source_of(evidence: Evidence | None) -> str:
    """One of SOURCES."""
    if evidence is None:
        return NOTHING
    if evidence.trust is Trust.GUESS:
        return f"guess: {evidence.source}" if evidence.source else RESTART_POLICY
    return next(source for begins, source in BY.items() if evidence.text.startswith(begins))
