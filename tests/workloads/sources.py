"""The source of the evidence for a workload type."""

from webhook.policy.classification.classify import SOURCES as GUESSES
from webhook.policy.classification.evidence import SHOWN, Evidence
from webhook.policy.values.tier_policy import Grade

NOTHING = "nothing"
RESTART_POLICY = "guess: restartPolicy"
BY = {
    "its kind": "kind",
    "the fields of": "fields",
    "its label": "label",
    "the usual use of": "usual use",
    "its restartPolicy": "end",
}
"""What is no guess, by how its text begins."""

GRADE_OF = {f"guess: {source}": "shown" if source in SHOWN else "hinted" for source in GUESSES}
GRADE_OF |= {BY["the usual use of"]: "usual", BY["its restartPolicy"]: "usual", RESTART_POLICY: "hinted", NOTHING: "-"}
"""The grade of each source; the rest is proven."""

SOURCES = (*BY.values(), *(f"guess: {source}" for source in GUESSES), RESTART_POLICY, NOTHING)


def source_of(evidence: Evidence | None) -> str:
    """One of SOURCES."""
    if evidence is None:
        return NOTHING
    if evidence.grade < Grade.Usual:
        return f"guess: {evidence.source}" if evidence.source else RESTART_POLICY
    return next(source for begins, source in BY.items() if evidence.text.startswith(begins))
