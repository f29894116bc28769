"""Real Knative Services whose tenant holds: Knative's webhook, controllers and autoscaler beside ours.

Nothing answers in the pods of fake nodes and no request comes, so they are ready once they run, and never idle.
"""

from collections.abc import Iterator

import pytest

from localcluster.operators import RunningOperator, knative
from localcluster.waiting import wait_until

from .conftest import Start
from .samples import a_knative_service
from .team import SECONDS, Team

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("serving")]

DEADLINE, MIN_SCALE = "serving.knative.dev/progress-deadline", "autoscaling.knative.dev/min-scale"
A_DAY = {DEADLINE: "24h", MIN_SCALE: "1"}
A_MOMENT = {DEADLINE: "2s", MIN_SCALE: "1"}


@pytest.fixture(scope="module")
def serving(start: Start) -> Iterator[RunningOperator]:
    """Knative for one file's tests, and its webhook with the certificate that it makes."""
    webhook = start(knative.WEBHOOK)
    asked = ("get", "mutatingwebhookconfiguration", "webhook.serving.knative.dev", "--output=yaml")
    wait_until(lambda: "caBundle" in webhook.cluster.kubectl(*asked).stdout, SECONDS, "its certificate")
    controllers = start(knative.CONTROLLERS)
    yield controllers
    for each in (controllers, webhook):
        each.kill()  # asked to end, it lets requests come for half a minute more
        each.end()


def is_ready(team: Team, revision: str) -> None:
    what = f"revision/{revision}"
    team.eventually(lambda: team.condition(what, "Ready").get("status") == "True", f"{revision}, ready")


def is_scaled_to_zero(team: Team, revision: str) -> None:
    """Return whether its Deployment has no replicas; Knative's words depend on which controller looks first."""
    named = f"{revision}-deployment"
    replicas = lambda: {each["metadata"]["name"]: each["spec"]["replicas"] for each in team.get("deploy")["items"]}  # noqa: E731
    team.eventually(lambda: replicas().get(named) == 0, f"{revision}, given up")
    ready = lambda: team.condition(f"revision/{revision}", "Ready").get("status")  # noqa: E731
    team.eventually(lambda: ready() == "False", f"{revision}, said to have failed")
    team.waits(0)


def test_its_service_says_what_it_waits_for_and_it_runs_when_there_is_room(full: Team) -> None:
    answer = full.apply(a_knative_service("vllm", **A_DAY))
    assert (
        "[queued-to-zero] Knative gives a new revision up if its pods wait longer than progress-deadline 24h" in answer
    )
    assert "this Service asks for 4 in all, so its pods are queued" in answer
    full.waits(1)
    assert {tier for tier, _, _ in full.tiers()} == {"gpu-training", "gpu-serving"}
    failed = lambda: full.condition("ksvc/vllm", "ConfigurationsReady").get("message", "")  # noqa: E731
    full.eventually(lambda: "failed with message: waits for 4 GPUs: tenant" in failed(), "our sentence")
    full.makes_room()
    full.runs(1)
    is_ready(full, "vllm-00001")
    assert full.get("ksvc/vllm")["status"]["latestReadyRevisionName"] == "vllm-00001"
    full.shows("total 4/8")


def test_after_its_deadline_it_is_at_zero_whatever_its_min_scale_until_somebody_scales_it(full: Team) -> None:
    assert "longer than progress-deadline 2s" in full.apply(a_knative_service("vllm", **A_MOMENT))
    full.waits(1)
    is_scaled_to_zero(full, "vllm-00001")
    full.makes_room()
    full.shows("total 0/8")
    assert full.get("deployment/vllm-00001-deployment")["spec"]["replicas"] == 0
    full.scales("deployment/vllm-00001-deployment", 1)
    full.runs(1)
    is_ready(full, "vllm-00001")


def test_what_the_tenant_denies_is_at_zero_as_well(full: Team) -> None:
    full.may_use({"gpus": "8"}, onExceed="Deny")
    assert "[queued-to-zero]" not in full.apply(a_knative_service("vllm", **A_MOMENT))
    is_scaled_to_zero(full, "vllm-00001")


def test_a_new_revision_waits_beside_the_one_that_serves(full: Team) -> None:
    full.may_use({"gpus": "12"}, onExceed="Hold")
    full.apply(a_knative_service("vllm", **A_DAY))
    is_ready(full, "vllm-00001")
    full.apply(a_knative_service("vllm", **A_MOMENT))
    full.waits(1)
    is_scaled_to_zero(full, "vllm-00002")
    assert full.get("ksvc/vllm")["status"]["latestReadyRevisionName"] == "vllm-00001"
    full.apply(a_knative_service("vllm", **A_DAY, **{"example.com/why": "again"}))
    full.waits(1)
    full.makes_room()
    is_ready(full, "vllm-00003")
    full.runs(2)
