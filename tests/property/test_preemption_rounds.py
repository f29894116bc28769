"""The leader's rounds with several preemptors, beside a scheduler that asks pods of low tiers first.

Each victim holds one device, so whoever is evicted in vain is one too many.
"""

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.builders.simulated_preemption import Case, Simulated, leading, one_round


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = tuple(draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    graces = tuple(draw(st.integers(1, 40)) for _ in range(sum(nodes)))
    tiers = st.sampled_from(draw(st.sampled_from((("gpu-training",), ("gpu-training", "gpu-serving")))))
    comes = draw(st.lists(st.tuples(st.integers(1, 20), tiers), min_size=1, max_size=sum(nodes)))
    return Case(nodes, graces, tuple(comes), draw(st.integers(0, 999)))


@settings(max_examples=12, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(cases())
def test_all_get_devices_and_nobody_goes_in_vain(case: Case) -> None:
    simulated = Simulated(case)
    highs = [f"high-{each}" for each in range(len(case.comes))]
    with leading(simulated) as leader:
        for _ in range(300):
            simulated.next_second()
            one_round(leader, simulated)

    # 1. All run, and no node is closed any more.
    nodes = {each: simulated.cluster.pods[each]["spec"].get("nodeName") for each in highs}
    assert all(nodes.values()), nodes
    assert not simulated.reserved()

    # 2. No more devices were freed than they have, whichever of them has which.
    assert len(simulated.evicted) == len(highs), simulated.evicted
