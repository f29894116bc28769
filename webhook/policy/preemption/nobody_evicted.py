"""The answer that nobody is evicted for a preemptor, with its reason."""

from webhook.objects.refusal import Phrase
from webhook.policy.preemption.pod_state import PodState


class NobodyEvicted(Exception):  # noqa: N818 - an answer, not a malfunction
    """Nobody is evicted for a preemptor, and why."""

    def __init__(self, phrase: str, /, **fields: object) -> None:
        self.why = Phrase(phrase, **fields)
        super().__init__(self.why)


def not_judged(pod: PodState, what: Phrase) -> NobodyEvicted:
    return NobodyEvicted("preemption-not-judged", pod=pod.shown, what=what)
