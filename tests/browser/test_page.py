"""The page as somebody sees it who uses a screen reader, a phone, a dark room."""

import pytest

from tests.unit.page.samples import a_content, a_posture, a_tenant
from webhook.page.routes import Choice, rendered
from webhook.report.gpus_now import DayOfUse, Evicted, UseAt

from .conftest import Look

pytestmark = pytest.mark.release

DAY = tuple(UseAt(each * 600.0, {"gpu-training": 8.0, "gpu-batch": each / 20}) for each in range(144))
BY_PROMETHEUS = {"prometheus": "prometheus:9090", "day": DayOfUse(DAY, (Evicted(6000.0, "gpu-batch", 2.2),))}

LOOKS = {
    "of everything something": (a_content(), {}),
    "in the dark": (a_content(), {"dark": True}),
    "on a phone": (a_content(), {"width": 400}),
    "of 300 tenants": (a_content(tenants=tuple(a_tenant(f"tenant-{each:03}") for each in range(300))), {}),
    "of a tenant's refusals": (a_content(choice=Choice("alpha", "gpu-training", refused=True)), {"dark": True}),
    "empty": (a_content(tenants=(), verdicts=(), preemptions=(), leads=False, leader=""), {}),
    "of a replica that does not lead": (
        a_content(leads=False, leader="b", forward="kubectl port-forward pod/b 8090"),
        {},
    ),
    "with a day": (a_content(**BY_PROMETHEUS), {}),
    "with a day, on a phone in the dark": (
        a_content(leads=False, gpus=None, **BY_PROMETHEUS),
        {"width": 400, "dark": True},
    ),
    "with a Prometheus that tells nothing": (
        a_content(use=DAY, prometheus="prometheus:9090", day=DayOfUse(problem="no answer")),
        {},
    ),
    "in trouble": (a_content(posture=a_posture(mode="Audit"), health={"ledger": "pods can't be watched"}), {}),
}


@pytest.mark.parametrize("what", LOOKS)
def test_axe_finds_nothing(look: Look, what: str) -> None:
    content, window = LOOKS[what]
    assert look(rendered(content), **window) == []


def test_axe_does_look(look: Look) -> None:
    """A page without a language and with an image that says nothing."""
    found = look("<!doctype html><html><head><title>x</title></head><body><img src='x.png'></body></html>")
    assert {"html-has-lang", "image-alt"} <= {each[0] for each in found}
