"""The fault test can fail: what its books say of histories in which something is wrong."""

from typing import Any

from tests.apiserver.faults.books import Book, books, differences
from tests.apiserver.faults.history import Change
from tests.apiserver.faults.plan import Plan, Team, storm
from tests.apiserver.faults.queue import left_gated

ALPHA = Plan((Team("alpha", ("a-0", "a-1"), {None: 3, "gpu-training": 2}),), ())

Tree = dict[str, Any]


def pod(name: str, gpus: int = 1, tier: str = "gpu-training", phase: str = "Pending") -> Tree:
    limits = {"nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"namespace": "a-0", "name": name, "labels": {"gpu-tiers.dev/tier": tier}},
        "spec": {"containers": [{"resources": {"limits": limits}}]},
        "status": {"phase": phase},
    }


def quota(used: int, reserved: int) -> Tree:
    usage = [{"tier": "gpu-training", "hard": "2", "used": str(used), "reserved": str(reserved)}]
    return {"metadata": {"name": "alpha"}, "status": {"usage": usage, "ledger": {"seal": "whole"}}}


def book(*stored: tuple[str, Tree | None]) -> Book:
    changes = (Change(number, f"/registry/{key}", each) for number, (key, each) in enumerate(stored))
    return books(ALPHA, changes)[0]


STATUS = "gpu-tiers.dev/tenantquotas/alpha"


def test_a_row_that_was_full_and_never_over() -> None:
    found = book(("pods/a-0/x", pod("x")), ("pods/a-1/y", pod("y")), ("pods/a-0/z", pod("z", tier="gpu-batch")))
    assert (found.over_admitted, found.uncharged) == (0, 0)


def test_a_moment_over_quota_counts_though_it_passes() -> None:
    found = book(("pods/a-0/x", pod("x")), ("pods/a-0/y", pod("y", 3)), ("pods/a-0/x", None))
    assert found.over_admitted == 2
    assert found.story()[-1] == "1 pod a-0/y of 3 on gpu-training is stored; stored total 4/3, gpu-training 4/2"


def test_a_pod_that_is_finished_holds_nothing() -> None:
    finished = pod("x", 2, phase="Succeeded")
    assert book(("pods/a-0/x", pod("x", 2)), ("pods/a-0/x", finished), ("pods/a-0/y", pod("y", 2))).over_admitted == 0


def test_a_pod_that_ends_now_holds_nothing() -> None:
    ending = pod("x", 2)
    ending["metadata"] |= {"deletionTimestamp": "2026-11-01T08:00:00Z", "deletionGracePeriodSeconds": 0}
    found = book((STATUS, quota(0, 2)), ("pods/a-0/x", pod("x", 2)), ("pods/a-0/x", ending), (STATUS, quota(0, 0)))
    assert (found.over_admitted, found.uncharged) == (0, 0)


def test_a_pod_beyond_what_the_status_says_is_uncharged() -> None:
    found = book((STATUS, quota(0, 1)), ("pods/a-0/x", pod("x")), ("pods/a-0/y", pod("y")), (STATUS, quota(2, 0)))
    assert (found.over_admitted, found.uncharged) == (0, 1)


def test_a_status_that_is_given_back_too_early_is_uncharged() -> None:
    found = book((STATUS, quota(0, 1)), ("pods/a-0/x", pod("x")), (STATUS, quota(0, 0)))
    assert found.uncharged == 1


def test_a_status_that_says_what_a_list_says() -> None:
    assert list(differences(ALPHA, [quota(1, 0)], [pod("x")])) == []
    assert list(differences(ALPHA, [quota(1, 1)], [pod("x")])) == [
        "alpha gpu-training: 1 used and 1 reserved, 1 stored"
    ]


def waiting(name: str, gpus: int = 1, second: int = 0, gang: str = "") -> Tree:
    """A pod of gpu-training that waits since that second."""
    found = pod(name, gpus)
    found["metadata"]["creationTimestamp"] = f"2026-11-01T08:00:{second:02}Z"
    found["metadata"]["ownerReferences"] = [{"name": gang}] if gang else []
    found["spec"] |= {"priority": 1000, "schedulingGates": [{"name": "gpu-tiers.dev/quota"}]}
    return found


def test_one_that_waits_though_there_is_room() -> None:
    assert list(left_gated(ALPHA, [pod("x"), waiting("y")])) == ["a-0/y of 1 on gpu-training waits, and there is room"]
    assert list(left_gated(ALPHA, [pod("x"), waiting("y", 2)])) == []


def test_one_that_waits_behind_a_gang_that_lacks_room() -> None:
    gang = [waiting(f"g-{number}", second=number, gang="g") for number in range(2)]
    assert list(left_gated(ALPHA, [pod("x"), *gang, waiting("y", second=2)])) == []
    job = {"metadata": {"name": "g", "namespace": "a-0", "creationTimestamp": "2026-11-01T08:00:01Z"}}
    assert list(left_gated(ALPHA, [pod("x"), *gang, waiting("y", second=0)], [job])) == [
        "a-0/y of 1 on gpu-training waits, and there is room"
    ], "its Job came later"


def test_a_gang_of_which_a_part_waits() -> None:
    gone = waiting("g-0", gang="g")
    del gone["spec"]["schedulingGates"]
    assert list(left_gated(ALPHA, [gone, waiting("g-1", gang="g")])) == [
        "a-0/g: 1 of 2 pods wait, and the others don't"
    ]


def test_a_seed_gives_the_same_storm_again() -> None:
    assert storm("s", 7, replicas=3) == storm("s", 7, replicas=3)
    assert storm("s", 7, replicas=3) != storm("s", 8, replicas=3)
