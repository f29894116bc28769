"""A policy, tenant or program that a page shows works."""

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import a_pod, a_policy, a_tenant, a_workload
from tests.builders.world import FakeApi
from webhook.cli.policy_tests.suite import CaseSection, ExpectSection, SuiteSection, UsedSection
from webhook.config.load import parse
from webhook.config.model import PolicyFile
from webhook.config.tenant_quota_schema import tenant_quota_problems
from webhook.policy.checkpoint.hook_kinds import TERMINATION_LOG, file_handler
from webhook.policy.quota.tenant_quotas import read_tenant

from .markdown import Block, page

HEAD = {"apiVersion": "config.gpu-tiers.dev/v1alpha1", "kind": "TierPolicy"}
POLICIES = [block for name in ("policy", "placement", "queues") for block in page(f"docs/{name}.md").blocks("yaml")]


@pytest.mark.parametrize("block", POLICIES, ids=lambda block: block.headings[-1])
def test_a_policy_of_the_page_is_accepted(block: Block) -> None:
    assert parse(yaml.safe_dump(HEAD | yaml.safe_load(block.text)))


def test_the_policy_page_names_every_field() -> None:
    text = page("docs/policy.md").text
    fields = {field.alias or name for name, field in PolicyFile.model_fields.items()} - set(HEAD)
    assert [field for field in sorted(fields) if field not in text] == []


def test_the_page_on_policy_tests_names_every_field_and_shows_a_good_suite() -> None:
    testing = page("docs/testing-policies.md")
    sections = SuiteSection, CaseSection, UsedSection, ExpectSection
    fields = {field.alias or name for section in sections for name, field in section.model_fields.items()}
    assert [name for name in sorted(fields - set(HEAD)) if f"`{name}`" not in testing.text] == []
    (shown,) = (block for block in testing.blocks("yaml") if "TierPolicyTest" in block.text)
    assert len(SuiteSection.model_validate(yaml.safe_load(shown.text)).cases) == 3


def test_the_pages_on_quotas_name_every_field_and_show_a_good_quota() -> None:
    crd: Any = yaml.safe_load(page("charts/gpu-tiers/crds/tenantquotas.gpu-tiers.dev.yaml").text)
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    quotas = [page(f"docs/{name}.md") for name in ("quota", "queueing", "lending", "budgets")]
    assert [field for field in spec if not any(field in each.text for each in quotas)] == []
    (shown,), (of_hours,) = quotas[0].blocks("yaml"), quotas[-1].blocks("yaml")
    assert read_tenant(yaml.safe_load(shown.text)).max_tier == "gpu-training"
    assert tenant_quota_problems(yaml.safe_load(of_hours.text)) == []
    assert len(read_tenant(yaml.safe_load(of_hours.text)).budgets) == 2


def test_the_values_of_the_migration_say_what_its_policy_says() -> None:
    policy, values = (yaml.safe_load(page(f"docs/migration/{name}.yaml").text) for name in ("policy", "values"))
    assert HEAD | {"mode": values["mode"]} | values["policy"] == policy


def test_the_researcher_s_page_calls_what_the_example_has() -> None:
    (block,) = page("docs/researchers.md").blocks("python")
    (imported,) = (node for node in ast.parse(block.text).body if isinstance(node, ast.ImportFrom))
    example = ast.parse(page("examples/training/gpu_tiers_checkpoint.py").text)
    defined = {node.name for node in example.body if isinstance(node, ast.FunctionDef)}
    assert {each.name for each in imported.names} <= defined


def test_the_program_of_the_page_answers_the_hook(tmp_path: Path) -> None:
    (block,) = (each for each in page("docs/checkpointing.md").blocks("python") if "The file protocol" in each.headings)
    program = block.text.replace("/run/gpu-tiers", str(tmp_path))
    loop = "\nwhile True:\n    time.sleep(0.05)\n    after_each_step(lambda: None)\n"
    with subprocess.Popen([sys.executable, "-c", program + loop]) as training:
        try:
            while not (tmp_path / "listening").exists():
                assert training.poll() is None
                time.sleep(0.05)
            handler = file_handler(str(tmp_path), 20)["exec"]["command"]
            handler = [each.replace(TERMINATION_LOG, "/dev/null") for each in handler]
            assert subprocess.run(handler, check=False).returncode == 0
            assert training.wait(20) == 143
        finally:
            training.kill()


@pytest.mark.parametrize(("rank", "written"), [("0", [3, 3]), ("1", [])])
def test_one_rank_of_a_pod_writes_what_the_example_has_saved(tmp_path: Path, rank: str, written: list[int]) -> None:
    own = {"GPU_TIERS_FOLDER": str(tmp_path), "STEPS": "3", "STEP_SECONDS": "0", "LOCAL_RANK": rank}
    program = [sys.executable, str(Path("examples", "training", "train.py").absolute())]
    subprocess.run(program, env=os.environ | own, cwd=tmp_path, capture_output=True, check=True)
    found = [json.loads(each.read_text()) for each in tmp_path.glob("progress*")]
    assert [each[key] for each in found for key in ("step", "last_saved_step")] == written


async def test_a_kind_whose_project_has_ended_comes_back_by_the_row_of_the_page() -> None:
    (block,) = page("docs/decisions/dead-kinds.md").blocks("yaml")
    specs = {"Worker": {"replicas": 2, "template": a_pod().asking(4).template()}}
    job = a_workload("training.kubedl.io/v1alpha1", "PyTorchJob", "resnet", pytorchReplicaSpecs=specs)
    pod = a_pod().asking(4).owned_by(job)
    without, with_row = (
        FakeApi(a_tenant().allowing("6"), job, policy=a_policy(**each)) for each in ({}, yaml.safe_load(block.text))
    )
    assert (await without.create(pod)).audit["tier"] == "gpu-interactive"
    assert (await with_row.create(pod)).audit["tier"] == "gpu-training"
    assert not (await with_row.validate(job)).allowed, "it is booked as a whole: 8 GPUs of 6"
