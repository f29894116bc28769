"""A reader chooses in the page's URL what of it to see: a tenant, a tier, what was refused."""

import pytest
from msgspec import structs

from tests.unit.page.samples import EVIL, a_content, a_preemption, a_tenant, a_verdict, some_gpus
from tests.unit.page.test_render import content_of, got, text_of
from webhook.page.routes import MOST_TENANTS, PageContent, page_app
from webhook.report.latest import VerdictGroup

ALPHAS = a_verdict("llm-finetune")
REFUSED = a_verdict("llm-pretrain", "refused", "tenant alpha: gpu-training is at 6 of 6 GPUs", times=41)


def of(tenant: str, tier: str, group: VerdictGroup) -> VerdictGroup:
    return structs.replace(group, last=structs.replace(group.last, tenant=tenant, tier=tier))


def content(**parts: object) -> PageContent:
    betas = of("beta", "gpu-batch", a_verdict("sweep"))
    return a_content(verdicts=(ALPHAS, REFUSED, betas), preemptions=(a_preemption(),), **parts)


async def shown(query: str, page: PageContent | None = None) -> str:
    answer = await got(page_app(content_of(page or content())), "localhost:8090", f"/?{query}")
    assert answer.status_code == 200
    return text_of(answer.text).partition("gpu-tiers ✓")[2] or text_of(answer.text).partition("gpu-tiers ✗")[2]


async def test_a_tenant_sees_what_concerns_it() -> None:
    text = await shown("tenant=beta")
    assert "team-alpha/PyTorchJob/sweep" in text
    assert "llm-finetune 1 admitted" not in text
    assert "team-beta/sweep-worker-3" in text, "its pod was evicted"
    assert "Nobody of these waits" in text
    assert "alpha gpu-training 4 2 6" not in text


async def test_what_was_refused_is_shown_once_with_how_often() -> None:
    text = await shown("refused=1")
    assert "team-alpha/PyTorchJob/llm-pretrain 41 refused gpu-training tenant alpha: gpu-training is at 6 of 6" in text
    assert " admitted " not in text
    assert "Shown: only what was refused show all" in text


async def test_a_tier_and_a_tenant_narrow_together() -> None:
    assert "None of these since this replica started." in await shown("tenant=beta&tier=gpu-training")
    assert "There is no tenant of that name." in await shown("tenant=nobody")
    assert "None of these since this replica began to lead." in await shown("tenant=gamma")


@pytest.mark.parametrize("query", ["tenant", "tier", "reload", "refused", "other"])
async def test_what_a_url_says_is_text(query: str) -> None:
    answer = await got(page_app(content_of(content())), "localhost:8090", f"/?{query}={EVIL}")
    assert answer.status_code == 200
    assert "<script" not in answer.text
    assert 'http-equiv="refresh"' not in answer.text


async def test_a_wall_loads_it_again() -> None:
    answer = await got(page_app(content_of(content())), "localhost:8090", "/?reload=30&refused=1")
    assert '<meta http-equiv="refresh" content="30">' in answer.text
    assert 'href="?reload=30"' in answer.text
    assert "form-action 'self'" in answer.headers["content-security-policy"]


async def test_of_300_tenants_those_that_are_worst_off_stand_there() -> None:
    tenants = [a_tenant(f"tenant-{each:03}") for each in range(300)]
    tenants[217] = a_tenant("tenant-217", "OverQuota: the total is at 18 of 16")
    page = content(tenants=tuple(tenants), gpus=some_gpus(waits=300))
    answer = await got(page_app(content_of(page)), "localhost:8090")
    text = text_of(answer.text)
    assert f"The {MOST_TENANTS} of 300 tenants that are worst off." in text
    assert text.index("tenant-217 gpu-training") < text.index("tenant-000 gpu-training")
    assert len(answer.text) < 100_000
    assert "tenant-299 gpu-training 4 0 2 0 6 full" in await shown("tenant=tenant-299", page)
