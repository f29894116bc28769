"""The leader asks a training to save in the answers to its reports: in time, by hand, and when its node goes."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from webhook.cli.main import app

from .asking import events, kubeconfig_of, run
from .busy_devices import Busy, seconds_until
from .installed import Installed, Tree, gpu_pod
from .reporting import Send, sender, token_for

pytestmark = pytest.mark.apiserver

BETWEEN = 4.2
"""Seconds between two reports: the webhook hears none sooner."""
LONG = 20


@dataclass
class Training:
    """What the listener in a pod would report. It saves when it is asked, unless `why` it can't."""

    pod: Tree
    token: str
    send: Send
    why: str = ""
    step: int = 100
    saved: tuple[int, float] | None = None
    ids: list[str] = field(default_factory=list)
    _finished: Tree | None = None
    _last: float = 0.0

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    def report(self) -> Tree:
        """Report as soon as the webhook hears it, and do what the answer asks."""
        time.sleep(max(0.0, self._last + BETWEEN - time.monotonic()))
        self.step += 10
        said: dict[str, Any] = {"step": self.step}
        if self.saved is not None:
            said["last_saved_step"], said["last_saved_at"] = self.saved
        if self._finished is not None:
            said["save"] = self._finished
        answer = self.send(self.token, said)
        self._last = time.monotonic()
        wish = answer.get("save")
        if wish and wish["id"] not in self.ids:
            self.ids.append(wish["id"])
            time.sleep(wish["in"])
            self.step = max(self.step, wish["step"])
            self._finished = {"id": wish["id"], "outcome": "failed", "why": self.why}
            if not self.why:
                self.saved = self.step, time.time()
                self._finished = {"id": wish["id"], "outcome": "saved", "step": self.step, "seconds": 0.1}
        return answer

    def live(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.report()


@pytest.fixture
def training(
    hearing: Installed, namespace: str, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Training:
    """A pod on a node, with a listener that reports."""
    pod = gpu_pod("train", tier="gpu-training", node=node)
    pod["metadata"]["annotations"] = {"gpu-tiers.dev/checkpoint": "listen"}
    answer = hearing.create(pod, namespace)
    assert answer.code == 0, answer.stderr
    stored: Tree = json.loads(answer.stdout)
    hearing.eventually(lambda: hearing.get("pod/train", namespace)["status"].get("phase") == "Running", "it runs")
    return Training(stored, token_for(hearing, stored), sender(stored, tmp_path, monkeypatch))


def made(installed: Installed, outcome: str, cause: str) -> float:
    return installed.metric("gpu_tiers_save_requests_total", outcome=outcome, cause=cause)


def test_a_training_saves_once_its_unsaved_work_reaches_the_bound_of_its_tier(
    hearing: Installed, training: Training
) -> None:
    assert "save" not in training.report(), "no bound is set"
    saved = made(hearing, "saved", "at-risk")
    with hearing.policy_with(saves={"maxAtRiskSeconds": {"gpu-training": 10}}):
        training.live(LONG)
        assert training.saved is not None
        hearing.eventually(lambda: made(hearing, "saved", "at-risk") > saved, "the save, counted")
        assert hearing.metric("gpu_tiers_save_seconds_count", tier="gpu-training") >= 1
        assert hearing.metric("gpu_tiers_over_max_at_risk_pods", tier="gpu-training") == 0


def test_a_person_asks_with_a_command_and_reads_what_came_of_it(
    hearing: Installed, namespace: str, training: Training
) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(run, hearing, "save", "train", f"--namespace={namespace}", f"--wait={LONG}", "-o=json")
        while not asked.done():
            training.report()
    answer = asked.result()
    assert answer.exit_code == 0, answer.output
    (said,) = json.loads(answer.stdout)["items"]
    assert (said["name"], said["outcome"]) == ("train", "Saved")
    assert training.saved is not None
    assert f"step {training.saved[0]}" in said["message"]
    before = len(training.ids)
    training.live(2 * BETWEEN)
    assert len(training.ids) == before == 1, "it is asked once"


def test_a_save_that_fails_is_told_with_the_reason(hearing: Installed, namespace: str, training: Training) -> None:
    training.why = "OSError(28, 'No space left on device')"
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(run, hearing, "save", "train", f"--namespace={namespace}", f"--wait={LONG}")
        while not asked.done():
            training.report()
    answer = asked.result()
    assert answer.exit_code == 1
    assert "No space left on device" in answer.stdout
    assert "No space left" in events(hearing, namespace, "NotSaved")["train"]


def test_a_training_saves_when_its_node_is_cordoned(hearing: Installed, node: str, training: Training) -> None:
    training.report()
    hearing.cluster.kubectl("cordon", node)
    training.live(LONG)
    assert training.ids == ["node-cordon"]
    assert training.saved is not None


def test_a_training_saves_before_it_is_evicted_for_its_device(
    hearing: Installed, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It trains until it has saved, so that ranks of other pods can save with it; then it is deleted."""
    busy = Busy(hearing, namespace)
    busy.add_nodes("a")
    low = busy.pod("train", "gpu-batch")
    low["metadata"]["annotations"] = {"gpu-tiers.dev/checkpoint": "listen"}
    try:
        with hearing.policy_with(preemption={"dra": "On"}):
            busy.create(low)
            seconds_until(lambda: busy.on("train"), 30)
            stored = hearing.get("pod/train", namespace)
            training = Training(stored, token_for(hearing, stored), sender(stored, tmp_path, monkeypatch))
            training.report()
            with busy.unrest():
                busy.create(busy.pod("high", "gpu-serving"))
                seconds_until(lambda: training.report() and training.saved, 60)
                assert "deletionTimestamp" not in hearing.get("pod/train", namespace)["metadata"]
                training.report()
                seconds_until(lambda: busy.on("high"), 60)
        assert [each.partition("-")[0] for each in training.ids] == ["eviction"]
        assert f"step {training.saved[0]}" in events(hearing, namespace, "Saved")["train"]
    finally:
        busy.remove()


def test_pods_that_do_not_report_can_not_be_asked(hearing: Installed, namespace: str, node: str) -> None:
    hearing.create(gpu_pod("silent", tier="gpu-serving", node=node), namespace)
    hearing.eventually(lambda: hearing.get("pod/silent", namespace)["status"].get("phase") == "Running", "it runs")
    answer = run(hearing, "save", "silent", f"--namespace={namespace}")
    assert answer.exit_code == 2
    assert "reports" in answer.stderr
    answer = run(hearing, "save", "--tier=gold")
    assert 'unknown tier "gold"; known tiers: gpu-training' in answer.stderr


def test_a_tenant_in_one_namespace_takes_no_right_in_others(hearing: Installed, namespace: str, node: str) -> None:
    hearing.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ada"}}, namespace)
    hearing.bind("ada-edit", "edit", "ada", namespace)
    hearing.bind(f"ada-{namespace}", "gpu-tiers-reader", "ada", namespace, everywhere=True)
    config = kubeconfig_of(hearing, "ada", namespace)
    hearing.create(gpu_pod("silent", tier="gpu-serving", node=node), namespace)
    hearing.eventually(lambda: hearing.get("pod/silent", namespace)["status"].get("phase") == "Running", "it runs")
    with hearing.tenant_for(f"of-{namespace}", namespace) as name:
        asks = ["save", f"--tenant={name}", f"--namespace={namespace}", f"--kubeconfig={config}"]
        assert "its running pod does not report" in CliRunner().invoke(app, asks).stderr
        everywhere = CliRunner().invoke(app, [*asks[:2], asks[3]])
        assert "cannot list resource" in everywhere.stderr
    hearing.api.delete(f"clusterrolebinding/ada-{namespace}")


def test_who_may_not_patch_a_pod_asks_it_nothing(hearing: Installed, namespace: str, training: Training) -> None:
    training.report()
    asks = f"gpu-tiers.dev/save-requested={datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    here = (f"--namespace={namespace}", "--as=mallory")
    assert "Forbidden" in hearing.cluster.kubectl("annotate", "pod/train", asks, *here, check=False).stderr
    training.live(2 * BETWEEN)
    assert training.ids == []


def test_a_pod_that_reports_nonsense_gets_nothing(hearing: Installed, namespace: str, training: Training) -> None:
    training.report()
    for said in ({"id": "x" * 101, "outcome": "saved"}, {"id": "x", "outcome": "perhaps"}, {"id": 7}):
        with pytest.raises(OSError, match="400 a report is what stands in the file"):
            training.send(training.token, {"step": 1, "save": said})
    hearing.api.patch("pod/train", {"metadata": {"annotations": {"gpu-tiers.dev/save-requested": "soon"}}}, namespace)
    time.sleep(BETWEEN)
    of_no_request = {"step": 2, "save": {"id": "at-risk-1", "outcome": "saved", "step": 2, "seconds": 1e9}}
    assert "save" not in training.send(training.token, of_no_request)
    assert not events(hearing, namespace, "Saved")
