"""The page as a browser gets it."""

import re
from html import unescape
from html.parser import HTMLParser

import httpx
import pytest
from msgspec import structs
from starlette.types import ASGIApp

from tests.unit.page.samples import EVIL, a_content, a_posture, a_preemption, a_tenant, a_verdict, some_gpus
from webhook.page.routes import Choice, Content, PageContent, page_app, rendered
from webhook.report.posture import DraPosture
from webhook.report.tenants import QueuedShown, QueueShown, RowShown

VOID = {"meta", "path", "rect", "i"}


class Balanced(HTMLParser):
    """Fails on an element that is closed in the wrong place, and keeps the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Close the tag."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += " "

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(Balanced(page).text))


def test_it_says_which_tiers_evict_which_what_is_used_and_what_happened() -> None:
    page_text = text_of(rendered(a_content()))
    for sentence in (
        "gpu-serving evicts gpu-batch, gpu-interactive; gpu-batch evicts gpu-interactive; gpu-interactive evicts",
        "system-node-critical (2000001000)",
        "OverQuota: the total is at 18 of 16",
        "PyTorchJob llm-finetune asks for 16 GPUs (2 x 8); tenant alpha has 6 of gpu-training left.",
        "it saved in 12 s 24 GPU-seconds 14 s",
        "which leads.",
        "14.5 of 24 in use, 5.5 free, 4 on nodes that take no pods, 16 waited for",
        "gpu-training 4 , and 16 waited for",
        "team-alpha/PyTorchJob/llm-finetune gpu-training alpha 16 2 2026-11-22 12:00:00 UTC 0/3 nodes have 8 GPUs",
    ):
        assert sentence in page_text, page_text


@pytest.mark.parametrize("part", ["tenants", "verdicts", "preemptions", "replica", "health", "gpus"])
def test_nothing_that_stands_in_an_object_becomes_a_part_of_the_page(part: str) -> None:
    evil = {
        "tenants": (a_tenant(EVIL, EVIL),),
        "verdicts": (a_verdict(EVIL, why=EVIL),),
        "preemptions": (a_preemption(words=EVIL),),
        "replica": EVIL,
        "health": {EVIL: EVIL},
        "gpus": some_gpus(EVIL, EVIL),
    }
    page = rendered(a_content(**{part: evil[part]}))
    assert "<script" not in page
    assert EVIL in text_of(page)


def test_the_line_of_a_tenant_stands_below_its_rows() -> None:
    place = QueuedShown(
        1, "team-alpha", f"Job/{EVIL}", "u", "gpu-training", 4, 4, "2026-11-22T12:00:00Z", "gpu-training"
    )
    waits = structs.replace(a_tenant("alpha"), queue=QueueShown(4, 4, 1, (place,)))
    page = rendered(a_content(tenants=(waits, a_tenant("beta"))))
    page_text = text_of(page)
    assert "The queue of tenant alpha 4 pods wait, for 4 GPUs in all." in page_text
    assert f"1 team-alpha/Job/{EVIL} gpu-training 4 4 2026-11-22 12:00:00 UTC room in gpu-training" in page_text
    assert "The queue of tenant beta" not in page_text
    assert "<script" not in page


def test_a_row_that_holds_alone_says_so() -> None:
    tenant = structs.replace(a_tenant("alpha"), rows=(RowShown("gpu-batch", 2, 2, 0, 0, "Hold"),))
    assert "alpha gpu-batch 2 0 0 0 2 full Hold" in text_of(rendered(a_content(tenants=(tenant,))))


def test_an_empty_cluster_is_described_in_words() -> None:
    page_text = text_of(rendered(a_content(tenants=(), verdicts=(), preemptions=())))
    assert "There is no TenantQuota: no tenant has a quota." in page_text
    assert "None since this replica started." in page_text
    assert "None since this replica began to lead." in page_text


def test_what_preemptions_have_cost_and_would_cost_now() -> None:
    page_text = text_of(rendered(a_content()))
    assert "Of those below 1 of 2 saved (50%), and lost at most 3.2 GPU-hours of work." in page_text
    assert "knows nothing at most 3.2 GPU-hours 14 s" in page_text
    risk = "now would lose, by tier: gpu-training at most 3.2 GPU-hours , gpu-batch 80 GPU-seconds ."
    assert f"To evict all training pods {risk}" in page_text
    of_beta = text_of(rendered(a_content(choice=Choice(tenant="beta"))))
    assert "training pods of tenant beta now would lose, by tier: gpu-batch 80 GPU-seconds ." in of_beta
    assert "would lose" not in text_of(rendered(a_content(at_risk={})))
    nothing_known = text_of(rendered(a_content(preemptions=(a_preemption(lost=None),))))
    assert "Of those below 1 of 1 saved (100%)." in nothing_known


@pytest.mark.parametrize(
    ("outcomes", "share"),
    [
        (("no-hook", "unknown"), "0 saved, 2 unknown"),
        (("saved", "not-saved", "hook-ended"), "1 of 2 saved (50%), 1 unknown"),
    ],
)
def test_the_share_of_saves_is_of_the_known_ones(outcomes: tuple[str, ...], share: str) -> None:
    preemptions = tuple(a_preemption(each, lost=None) for each in outcomes)
    assert f"Of those below {share}." in text_of(rendered(a_content(preemptions=preemptions)))


FORWARD = "kubectl -n gpu-tiers port-forward pod/gpu-tiers-7d9c5b-lead1 8090"
LEADS = "See the page of gpu-tiers-7d9c5b-lead1 , which leads"


@pytest.mark.parametrize(
    ("leader", "forward", "sentence"),
    [
        ("gpu-tiers-7d9c5b-lead1", FORWARD, f"{LEADS}: {FORWARD}"),
        ("gpu-tiers-7d9c5b-lead1", "", f"{LEADS}."),
        ("", "", "No replica leads now; ask again in a few seconds."),
    ],
)
def test_a_replica_that_does_not_lead_says_where_pods_are_counted(leader: str, forward: str, sentence: str) -> None:
    page_text = text_of(rendered(a_content(gpus=None, preemptions=(), leads=False, leader=leader, forward=forward)))
    assert f"Pods are counted by the replica that leads, and this one does not. {sentence}" in page_text
    assert "This replica knows of no preemptions, because it does not lead." in page_text
    assert "None since" not in page_text.partition("Recent preemptions")[2]


def test_audit_says_that_nothing_happens_yet_and_trouble_stands_first() -> None:
    page_text = text_of(
        rendered(a_content(posture=a_posture(mode="Audit"), health={"ledger": "pods can't be watched"}))
    )
    assert "nothing is refused or changed yet" in page_text
    assert page_text.index("Not well: ledger: pods can't be watched") < page_text.index("Mode Audit")
    assert "✗ 2 not well, gpu-tiers: Audit" in page_text


def test_the_first_line_says_that_all_is_well_or_each_thing_that_is_not() -> None:
    well = text_of(rendered(a_content(tenants=(a_tenant("alpha"),))))
    assert "✓ All is well: policy, ledger, certificate, webhook configurations Mode Enforce" in well
    page_text = text_of(rendered(a_content(health={"policy": "not taken: tier x is unknown", "ledger": ""})))
    assert "✗ Not well: policy: not taken: tier x is unknown tenants: see beta below" in page_text


def test_a_lost_node_with_gpu_pods_is_not_well() -> None:
    gpus = structs.replace(some_gpus(), lost=("gpu-0",))
    page_text = text_of(rendered(a_content(gpus=gpus, tenants=(a_tenant("alpha"),))))
    assert "✗ Not well: nodes with GPU pods that are not Ready: gpu-0" in page_text


class Cells(HTMLParser):
    """The headings of each table, and the labels of the cells in each of its rows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[tuple[list[str], list[list[str]]]] = []
        self.heading = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "table":
            self.tables.append(([], []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag == "th" and given["scope"] == "col":
            self.heading = True
        elif tag == "td" and "colspan" not in given:
            self.tables[-1][1][-1].append(given["data-label"] or "")

    def handle_data(self, data: str) -> None:
        if self.heading:
            self.tables[-1][0].append(data)
            self.heading = False


def test_on_a_phone_a_row_is_a_card_that_names_every_column() -> None:
    tables = Cells(rendered(a_content(tenants=(a_tenant("alpha"),)))).tables
    assert [len(headings) for headings, _ in tables] == [7, 10, 6, 7]
    for headings, (_, *rows) in tables:
        assert rows
        assert all(row == [each for each in headings if each != "Tenant" or "Tenant" in row] for row in rows)


def test_a_full_row_looks_full() -> None:
    page = rendered(a_content(tenants=(a_tenant("alpha"),)))
    assert page.count('<tr class="full">') == 1
    assert "alpha gpu-training 4 0 2 0 6 full Deny alpha total 9.5 0 2 0 16 4.5 Deny" in text_of(page)
    assert (
        'aria-label="4 used, 0 of them by pods without a node, 2 reserved, and 0 reserved for the queue, of 6 GPUs"'
        in page
    )


def test_what_has_no_node_is_distinguished_from_what_runs() -> None:
    tenant = structs.replace(
        a_tenant("alpha"), rows=(RowShown("gpu-batch", 8, 3, 1, 2, pending=2, reserved_for_queue=2),)
    )
    page = rendered(a_content(tenants=(tenant,)))
    assert "alpha gpu-batch 3 2 1 2 8 2 Deny" in text_of(page)
    parts = ("used", "12.5"), ("pending", "25.0"), ("reserved", "12.5"), ("queue", "25.0")
    assert "".join(f'<i class="{part}" style="width:{width}%"></i>' for part, width in parts) in page


def test_a_cluster_of_which_little_is_known_says_so() -> None:
    counting = text_of(rendered(a_content(gpus=None)))
    assert "Pods are being counted; ask again in a few seconds." in counting
    no_nodes = text_of(rendered(a_content(gpus=structs.replace(some_gpus(), free=None, closed=None))))
    assert "14.5 in use; how many are free is not known, because nodes can't be read now" in no_nodes
    assert "And 70 more workloads" in text_of(rendered(a_content(gpus=some_gpus(waits=100))))


@pytest.mark.parametrize("preset", ["four-tier", "three-tier", "inference-first"])
def test_every_preset_has_a_picture(preset: str) -> None:
    posture = a_posture(preset)
    page = rendered(a_content(posture=posture))
    assert page.count('class="tier tier-') == len(posture.tiers)
    assert page.count('class="head tier-') == sum(len(each.evicts) for each in posture.tiers)


def test_the_page_says_where_no_tier_evicts() -> None:
    posture = structs.replace(a_posture(), dra=(DraPosture("gpu.nvidia.com", "", ("d1",), ()),))
    page_text = text_of(rendered(a_content(posture=posture)))
    assert "But no tier evicts anybody for devices of gpu.nvidia.com on node d1: these come by DRA." in page_text


def content_of(content: PageContent) -> Content:
    async def chosen(choice: Choice) -> PageContent:
        return structs.replace(content, choice=choice)

    return chosen


async def got(app: ASGIApp, host: str, path: str = "/") -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{host}") as client:
        return await client.get(path)


async def test_the_port_serves_the_page_and_lets_a_browser_fetch_nothing() -> None:
    answer = await got(page_app(content_of(a_content())), "localhost:8090")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.headers["cache-control"] == "no-store"
    assert "http" not in re.sub(r'xmlns="[^"]*"', "", answer.text)


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("localhost:8090", 200),
        ("127.0.0.1:18090", 200),
        ("[::1]:8090", 200),
        ("attacker.example:8090", 400),
        ("localhost.attacker.example", 400),
    ],
)
async def test_a_site_that_names_its_own_host_gets_no_page(host: str, code: int) -> None:
    """DNS rebinding during a port-forward."""
    answer = await got(page_app(content_of(a_content())), host)
    assert answer.status_code == code
    assert ("gpu-tiers" in answer.text) is (code == 200)


def test_it_shows_the_latest_hundred() -> None:
    verdicts = [a_verdict(f"run-{each}") for each in range(200)]
    shown = a_content(verdicts=verdicts, preemptions=[a_preemption()] * 1000)
    assert list(shown.verdicts_chosen) == verdicts[:100]
    assert len(shown.preemptions_chosen) == 100
