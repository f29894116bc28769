"""The API server tries no call twice: a pod whose first call to the mutating webhook failed has an entry of its own."""

import json
from collections.abc import Iterator

import pytest

from localcluster.ports import free_ports

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver

FIRST, SECOND = 0, 1
"""The places of the two entries."""


@pytest.fixture
def dead(installed: Installed) -> Iterator[str]:
    """An address where nobody listens; afterwards both entries name the webhook's own again."""
    (port,) = free_ports(1)
    yield f"https://127.0.0.1:{port}/mutate"
    for entry in (FIRST, SECOND):
        send(installed, entry, f"{installed.address.url}/mutate")


def send(installed: Installed, entry: int, url: str) -> None:
    """Have an entry of the mutating configuration call this address."""
    change = [{"op": "replace", "path": f"/webhooks/{entry}/clientConfig/url", "value": url}]
    command = ("patch", "mutatingwebhookconfiguration", "zz-gpu-tiers", "--type=json", "-p", json.dumps(change))
    installed.cluster.kubectl(*command)


def refusal(installed: Installed, namespace: str) -> str:
    """Return the refusal that the creator of a GPU pod reads, and "" where the pod is admitted."""
    answer = installed.create(gpu_pod("asked"), namespace, dry_run=True)
    return answer.stderr if answer.code else ""


def asked(installed: Installed) -> float:
    return installed.metric("gpu_tiers_reviews_total", path="/mutate")


def test_a_pod_whose_first_call_failed_is_sent_once_more(installed: Installed, namespace: str, dead: str) -> None:
    for entry in (FIRST, SECOND):
        send(installed, entry, dead)
    installed.eventually(lambda: "the mutating webhook was not reached" in refusal(installed, namespace), "a refusal")
    send(installed, SECOND, f"{installed.address.url}/mutate")
    installed.eventually(lambda: refusal(installed, namespace) == "", "a pod with a tier, by the second call alone")


def test_a_pod_that_was_patched_is_not_sent_again(installed: Installed, namespace: str) -> None:
    installed.eventually(lambda: refusal(installed, namespace) == "", "a pod with a tier")
    before = asked(installed)
    assert refusal(installed, namespace) == ""
    assert asked(installed) == before + 1
