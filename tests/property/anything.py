"""Any JSON at all, what a call says to it, and sound objects that are spoiled in some places."""

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.builders import Tree, a_deployment, a_pod, a_podgroup, a_pytorchjob, a_scheduling_workload
from tests.builders.words import told
from tests.builders.world import FakeApi
from webhook.objects.refusal import Refused

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
SHAPES: list[Tree] = [
    FakeApi().sent(each)
    for each in (
        a_pod().asking().of_tier("gpu-batch"),
        a_deployment(a_pod().asking(2), replicas=3),
        a_pytorchjob(a_pod().asking(4)),
        a_podgroup().of_tier("gpu-training"),
        a_podgroup().having("spec.workloadRef", {"workloadName": "llm", "templateName": "workers"}),
        a_scheduling_workload("llm", driver="gpu-training", workers=""),
    )
]


def refusal_of(call: Callable[[], object]) -> str | None:
    """The sentence with which a call refuses; any other exception is a bug."""
    try:
        call()
    except Refused as refused:
        return told(refused)
    return None


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a tree, its root first."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(place for key, value in items for place in places(value, (*path, key)))]


@st.composite
def spoiled(draw: st.DrawFn, whole: Tree, *, below: int = 1) -> Tree:
    """A sound object with anything at all in one to three of its places."""
    tree: Tree = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from([each for each in places(tree) if len(each) >= below]))
        holder: Any = tree
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = draw(trees | st.sampled_from(["-1", "1e400", "", 1.5, True, None, [None], {"x": None}]))
    return tree
