"""The states of the model of an account: its rules by name, creates and changes, the ledger, leaders."""

from typing import NamedTuple

from tests.ledger.model.books_account import Amounts, Entries, Item

RULES = {
    "swap": "a write replaces the version on which it was decided",
    "draw": "a pod that adds nothing is written too",
    "news": "a refusal needs a read that began after the review came",
    "seal": "nobody books into an account whose seal is wrong",
    "horizon": "an account is rebuilt once all creates admitted before have met their end",
    "term": "a leader writes its term, then lists, then writes, under its own term only",
    "quorum": "a list is a quorum read",
    "age": "a reservation of which nothing was seen goes after H",
    "proof": "and after a quorum read that shows no such object",
    "over": "what it proves is gone stays so for that leader, whatever a lagging watch shows",
    "seen": "a reservation goes in the write that counts its pod or saw its end",
    "names": "creates of one name share a slot",
    "taken": "a create whose name is taken is refused before it is booked",
    "replaces": "the replacement of a preempted pod shares its slot",
    "one": "a slot is handed on to one replacement at a time",
    "apart": "the preempted pod and its replacement move to a slot of their own",
    "own": "a slot that a claim's holders share is handed on to nobody",
    "claim": "pods that share a claim share a slot",
    "move": "a change counts only on rows on which its pod does not count yet",
    "inside": "a gang's slot holds its pods: it counts what it declares, or its pods where that is more",
    "promise": "a workload's reservation stands until the watch of workloads shows it",
    "part": "when a gang ends only what it declared goes",
    "retry": "a create waits while its controller has an earlier one that is not settled",
    # Where the tenant holds:
    "gate": "a pod is opened only after a write that booked it",
    "whole": "a gang is booked whole, in one write",
    "sure": "a pod is not booked alone while its workload is not seen",
    "left": "an ended pod's slot counts for a while, and its replacement fills it",
    "kept": "the first that is short on a row reserves what it needs",
    "each row": "on rows for which nobody before it is short, the next one does so too",
    "total": "on its other rows too, beyond what will end on the short one",
    "nothing": "what adds nothing to a row does not wait for that row",
    "lowered": "a Left slot is filled only within the quota, where that was lowered",
    "never": "who could not fit an empty quota is passed over",
    "strict": "who comes after it fits beside what it reserves",
    "age of work": "the queue is by tier, then by age of the workload",
}
HOLD = (
    "gate",
    "whole",
    "sure",
    "left",
    "kept",
    "each row",
    "total",
    "nothing",
    "lowered",
    "never",
    "strict",
    "age of work",
)
FAULTS = ("claim", "list", "edit", "lower", "dup", "lost", "preempt", "copy")


class Ledger(NamedTuple):
    term: int
    entries: Entries
    sealed: bool = True


class View(NamedTuple):
    at: str
    news: tuple[tuple[int, str], ...] = ()  # what the watches have yet to tell; pods and workloads each in their order


class Leader(NamedTuple):
    view: View | None = None
    plan: frozenset[int] = frozenset()  # gates that may be opened at any later time


class State(NamedTuple):
    at: str  # n not made yet; y admitted and g gated, both under way; s stored and open, h behind its gate;
    # t preempted and terminating; e ended; d never stored
    ledger: Ledger
    leaders: tuple[Leader, ...]
    quota: Amounts
    cap: Amounts  # what may exist: the quota, or what was charged when it was lowered
    pairs: tuple[int, ...]  # ghost: the preempted pod that each really replaces
    timed: frozenset[int]  # ghost: ended pods whose time is over
    left: tuple[int, ...]  # how often each fault may still happen
    copy: tuple[int, Ledger] | None = None  # what a replica read for a create, without the rules that forbid it


class Scenario(NamedTuple):
    items: tuple[Item, ...]
    quota: Amounts
    faults: dict[str, int]
    start: str = ""
    hold: bool = False
    ends: bool = True  # whether objects may end
    way: str = "wait"  # of a retry: its `own` slot, `share` one, share one behind a `gate`, or `wait`


Step = tuple[str, State]
