"""The latest verdicts of this process, as people ask for them."""

from webhook.readmodel.shown import Shown

MOST_VERDICTS = 200


class VerdictShown(Shown, frozen=True):
    """What was answered. `outcome` is a word: let in, refused, would be refused, try again; `why` a sentence or a step.

    `time` is in seconds since 1970.
    """

    time: float
    kind: str
    namespace: str
    name: str
    outcome: str
    tier: str
    tenant: str
    why: str
    trace: tuple[str, ...] = ()
