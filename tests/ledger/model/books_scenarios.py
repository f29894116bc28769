"""The scenarios of the model of an account, and the one in which each rule is missed."""

from tests.ledger.model.books_account import Item
from tests.ledger.model.books_state import Scenario

A, B, C = Item("A"), Item("B"), Item("C")
V, H, K = Item("V", maker="r"), Item("H", maker="r", after=0), Item("K", maker="r")
R1, R2, R3 = Item("R1", maker="r"), Item("R2", maker="r", after=0), Item("R3", maker="r", after=1)
SMALL, WHOLE = Item("W", (1,), is_workload=True), Item("W", (2,), is_workload=True)
GROWN = Item("W2", (2,), changes=0, is_workload=True)
w0, w1, w2 = (Item(f"w{k}", gang=0, maker="w") for k in range(3))

BOOKED = {
    "core": Scenario((A, B, C), (2,), {"claim": 2, "list": 1, "copy": 1}),
    "dup": Scenario((A, B, C), (1,), {"claim": 1, "dup": 1}),
    "edits": Scenario((A, B, C), (1,), {"claim": 2, "edit": 1}),
    "names": Scenario((Item("A", place="n"), Item("B", place="n"), C), (2,), {"claim": 1}),
    "victim": Scenario((V, H, K), (1,), {"claim": 1, "preempt": 1}),
    "larger": Scenario((V, H._replace(wants=(2,)), C), (2,), {"claim": 1, "preempt": 1}),
    "namesake": Scenario((V._replace(place="n"), H, Item("Y", place="n")), (1,), {"claim": 1, "preempt": 1}),
    "gang": Scenario((WHOLE, w0._replace(maker=""), w1._replace(maker=""), C), (2,), {}),
    "gangs": Scenario((WHOLE, WHOLE._replace(name="X"), w0._replace(maker="")), (2,), {"claim": 2}),
    "grows": Scenario((SMALL, GROWN, w0._replace(maker=""), w1._replace(maker="")), (2,), {}),
    "claim": Scenario((Item("A", claim="c"), Item("B", claim="c"), C), (1,), {"claim": 1}),
    "claimed": Scenario((V._replace(claim="c"), Item("B", claim="c"), H), (1,), {"claim": 1, "preempt": 1}),
    "move": Scenario(
        (Item("A", (1, 0, 1)), Item("A>b", (0, 1, 1), changes=0), Item("B", (0, 1, 1))), (1, 1, 1), {"claim": 1}
    ),
}
RETRIES = {
    "refused": Scenario((R1, R2, R3, B), (2,), {"claim": 1}),
    "lost": Scenario((R1, R2, B), (1,), {"claim": 1, "lost": 1}),
    "forged": Scenario((R1, R2._replace(after=-1), B), (1,), {}),
}
"""The tries of a controller that makes one pod at once: made once the earlier create was refused; once its answer was
lost, or the controller was started again; and at any time, by somebody who only names that controller."""

QUEUED = {
    "line": Scenario((Item("O"), Item("G", (2,)), Item("S", age=1)), (2,), {"claim": 1}, "snn", hold=True),
    "nodes": Scenario((Item("O"), Item("G", (2,)), Item("S", gated=False)), (2,), {}, "shn", hold=True),
    "tiers": Scenario((Item("O"), Item("G", (2,)), Item("S", tier=1, gated=False)), (2,), {}, "shn", hold=True),
    "total": Scenario(
        (Item("O", (1, 0, 1)), Item("G", (2, 0, 2)), Item("S", (0, 1, 1), age=1), Item("T", (0, 1, 1), age=2)),
        (2, 2, 3),
        {},
        "shhn",
        hold=True,
    ),
    "rows": Scenario(
        (
            Item("O", (1, 0, 1)),
            Item("P", (0, 1, 1)),
            Item("G", (2, 0, 2)),
            Item("K", (0, 2, 2), age=1),
            Item("S", (0, 1, 1), age=2),
        ),
        (2, 2, 4),
        {},
        "sshhn",
        hold=True,
    ),
    "next": Scenario((V, H._replace(age=2), C), (1,), {"preempt": 1}, "snn", hold=True),
    "lowered": Scenario((V, H, C), (2,), {"lower": 1}, "sns", hold=True),
    "crash": Scenario(
        (Item("P", maker="j"), Item("Y", age=1), Item("P2", maker="j", after=0)), (1,), {}, "shn", hold=True
    ),
    "never": Scenario((Item("G", (3,)), Item("S", age=1)), (2,), {"claim": 1}, hold=True),
    "halves": Scenario(
        (WHOLE, w0, WHOLE._replace(name="X", age=1), Item("x0", gang=2), w1),
        (2,),
        {"claim": 1},
        "SHSHH",
        hold=True,
        ends=False,
    ),
    "lost pod": Scenario(
        (WHOLE._replace(age=2), w0, w1, w2._replace(after=2), Item("G", (2,), age=1)), (3,), {}, "bssnh", hold=True
    ),
    "elastic": Scenario((SMALL, w0, w1, w2._replace(after=2), Item("C", age=1)), (2,), {}, "bssnh", hold=True),
    "single": Scenario((SMALL, GROWN, w0, w1, Item("C", age=1)), (2,), {}, "sSsnh", hold=True),
}
SCENARIOS = BOOKED | RETRIES | QUEUED
SHOWN_IN = {
    "draw": "gang",
    "seal": "edits",
    "horizon": "edits",
    "term": "dup",
    "quorum": "dup",
    "age": "dup",
    "proof": "dup",
    "over": "namesake",
    "names": "names",
    "taken": "names",
    "replaces": "victim",
    "one": "victim",
    "apart": "namesake",
    "own": "claimed",
    "claim": "claim",
    "move": "move",
    "inside": "gang",
    "promise": "gangs",
    "part": "gang",
    "retry": "refused",
    "gate": "crash",
    "whole": "halves",
    "sure": "halves",
    "left": "next",
    "kept": "line",
    "each row": "rows",
    "total": "total",
    "nothing": "lost pod",
    "lowered": "lowered",
    "never": "never",
    "strict": "line",
    "age of work": "crash",
}
"""`core` where nothing else is said."""
