"""Every kind of hook on a kubelet: who saves when. The pods run side by side."""

from collections.abc import Iterator

import pytest

from demonstration.workloads import Tree, new_namespace
from localcluster.node import NodeCluster
from localcluster.node.images import python_image
from localcluster.waiting import wait_until

from .hooked_pods import PODS
from .release import Release
from .shellless import shell_less_image
from .together import SECONDS, Planned, Together

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("release")]

FAILED = "FailedPreStopHook"


def planned(pod: Tree) -> Planned:
    """Its journal says when its program runs, or its own probe; a program beside it has a file of its own."""
    main, *others = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    journal = () if "readinessProbe" in main else ("journal",)
    return Planned(pod, prints=(*journal, *(each["name"] for each in others)))


@pytest.fixture(scope="module")
def pods(node: NodeCluster, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    assert release.installed, "before the first pod is made"
    node.import_image(shell_less_image(python_image(), tmp_path_factory.mktemp("image")))
    with new_namespace(node, "test") as namespace:
        together = Together(node, namespace, tmp_path_factory.mktemp("data"), map(planned, PODS))
        yield together
        together.end()


@pytest.mark.parametrize("name", ["http", "http-without-a-shell", "http-500", "exec", "signal", "signal-hup"])
def test_it_saves_when_asked_and_hears_sigterm_after_that(name: str, pods: Together) -> None:
    seen = pods[name]
    assert seen.journal == ["started", "saved", "told to end"]
    assert seen.exit_codes == {143}
    assert FAILED not in seen.events()


def test_sigterm_leaves_time_to_save(pods: Together) -> None:
    seen = pods["sigterm"]
    assert seen.pod["spec"]["terminationGracePeriodSeconds"] == 70, "its manifest says 3"
    assert seen.journal == ["started", "told to end", "saved", "saved", "saved"]
    assert seen.exit_codes == {143}


def test_none_keeps_the_policys_hook_away(pods: Together) -> None:
    seen = pods["finetune-llm"]
    assert seen.journal == ["started", "told to end", "saved"]
    assert "lifecycle" not in seen.pod["spec"]["containers"][0]
    assert seen.pod["spec"]["terminationGracePeriodSeconds"] == 30
    assert seen.pod["metadata"]["labels"]["gpu-tiers.dev/tier"] == "gpu-training"


def test_a_native_sidecar_outlives_the_save(pods: Together) -> None:
    seen = pods["sidecar"]
    assert seen.journal == ["started", "asked", "uploaded", "saved", "uploader told to end"]
    assert FAILED not in seen.events()


def test_a_second_container_without_gpus_ends_before_the_save(pods: Together) -> None:
    seen = pods["helper"]
    assert set(seen.journal[1:-1]) == {"asked", "helper told to end"}, "at the same time"
    assert seen.journal[-1] == "saved", "it waited for the end of the helper"
    assert FAILED not in seen.events()


def test_a_restricted_pod_saves(pods: Together) -> None:
    seen = pods["restricted"]
    assert seen.journal == ["started", "asked", "saved"]
    assert seen.exit_codes == {143}
    assert FAILED not in seen.events()


def test_a_hook_that_fails_is_an_event_and_the_pod_ends(pods: Together) -> None:
    seen = pods["fails"]
    assert seen.journal == ["started", "told to end"]
    assert seen.exit_codes == {143}
    wait_until(lambda: FAILED in seen.events(), SECONDS, "the event")


def test_a_hook_that_outruns_the_grace_is_cut_off(pods: Together) -> None:
    """The kubelet gives the program two seconds more, so that it hears SIGTERM."""
    seen = pods["outrun"]
    assert seen.pod["spec"]["terminationGracePeriodSeconds"] == 11
    assert seen.journal == ["started", "told to end"]
    assert seen.exit_codes == {143}
    wait_until(lambda: FAILED in seen.events(), SECONDS, "the event")


@pytest.mark.parametrize("name", ["documented", "finetune-small"])
def test_what_the_docs_show_ends_without_a_complaint(name: str, pods: Together) -> None:
    seen = pods[name]
    assert seen.exit_codes == {143}, "it ended by itself: it hears no SIGTERM"
    assert FAILED not in seen.events()
