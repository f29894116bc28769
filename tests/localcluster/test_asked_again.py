"""A cluster that runs is not taken for another one."""

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import keeper
from localcluster.processes import ProcessError


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cluster of one replica, as its keeper leaves word of it."""
    monkeypatch.setenv("GPU_TIERS_CACHE", str(tmp_path))
    (keeper.state() / "asked").write_text("--kubernetes=1.37 --node=fake --replicas=1")
    (keeper.state() / "ready").write_text("/kubeconfig")
    with (keeper.state() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.usefixtures("running")
def test_the_same_cluster_is_there_already() -> None:
    assert keeper.up("1.37", "installation", "--replicas=1", real=False) == Path("/kubeconfig")


@pytest.mark.usefixtures("running")
def test_another_number_of_replicas_is_not_ignored() -> None:
    with pytest.raises(ProcessError) as refused:
        keeper.up("1.37", "installation", "--replicas=2", real=False)
    assert str(refused.value) == (
        "a cluster runs already, with --kubernetes=1.37 --node=fake --replicas=1; stop it first to have --replicas=2"
    )
