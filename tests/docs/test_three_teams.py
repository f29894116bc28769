"""Test the page "A policy for three teams": its files, its commands without a cluster, then those on `make cluster`."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from installation.examples import add_tenants
from installation.helm import CHART, RELEASE, helm
from localcluster import Cluster
from localcluster.waiting import wait_until
from webhook.config.load import parse
from webhook.policy.quota.tenant_quotas import read_tenant

from .markdown import ROOT, Block, page
from .shell import lines, run_as_printed, shell

PAGE = page("docs/three-teams.md")
FOLDER = ROOT / "examples" / "three-teams"
_POD = re.compile(r"\b(retrain|chat-[0-9a-f]+)-[a-z0-9]{5}\b")


@pytest.fixture
def teams(tmp_path: Path) -> Path:
    """Return the reader's copy of the example, beside the chart."""
    (tmp_path / "charts").symlink_to(ROOT / "charts")
    return Path(shutil.copytree(FOLDER, tmp_path / "teams"))


def blocks(step: str, language: str) -> list[Block]:
    return [each for each in PAGE.blocks(language) if each.headings[-1].startswith(step)]


def sessions(step: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a step, each with the lines that the page shows below it."""
    for block in blocks(step, "console"):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, answer = part.partition("\n")
            yield command, answer.splitlines()


def assert_shown(shown: list[str], printed: str) -> None:
    """Every shown line is printed, in this order; a line or an end of `…` stands for what the page leaves out."""
    there = iter(printed.splitlines())
    for line in (each.removesuffix("…").rstrip() for each in shown):
        assert not line or any(other.strip().startswith(line.strip()) for other in there), f"{line}\n{printed}"


@pytest.mark.parametrize(("step", "file"), [("1.", "policy.yaml"), ("2.", "tenants/lab.yaml")])
def test_the_page_shows_the_file(step: str, file: str) -> None:
    (block,) = blocks(step, "yaml")
    assert block.text == re.sub(r"^#.*\n", "", (FOLDER / file).read_text(), flags=re.MULTILINE)


def test_the_words_from_the_readme_to_the_enforced_policy_are_few() -> None:
    assert len(page("README.md").text.split()) + len(PAGE.text.partition("\n## Later")[0].split()) <= 2500


def test_the_commands_of_the_page_that_need_no_cluster_answer_as_it_shows(teams: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    asked = list(sessions("3."))
    assert [command.split()[1] for command, _ in asked if command.startswith("gpu-tiers")] == [
        "lint",
        "test",
        "review",
        "policy",
    ]
    for command, shown in asked:
        run = subprocess.run(
            ["bash", "-c", command],
            cwd=teams,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode in {0, 1}, run.stderr
        assert_shown(shown, run.stdout)


def test_the_lines_for_kueue_are_accepted() -> None:
    policy, tenant = (yaml.safe_load(each.text) for each in blocks("Later", "yaml"))
    assert parse(yaml.safe_dump(yaml.safe_load((FOLDER / "policy.yaml").read_text()) | policy)).kueue
    night = yaml.safe_load((FOLDER / "tenants" / "night.yaml").read_text())
    night["spec"] |= tenant
    assert read_tenant(night).max_tier == "nightly"


@pytest.fixture
def examples_again(made_cluster: Cluster) -> Iterator[None]:
    """Bring back the policy and the tenants of the examples, which other tests need."""
    values = helm(made_cluster, "get", "values", RELEASE, f"--namespace={RELEASE}", "--output=json")
    yield
    for kind in ("workloads", "tenants"):
        made_cluster.kubectl("delete", "--ignore-not-found", "-f", str(FOLDER / kind))
    options = (f"--namespace={RELEASE}", "--reset-values", "--values=-")
    helm(made_cluster, "upgrade", RELEASE, str(CHART), *options, input=values)
    add_tenants(made_cluster)


@pytest.mark.apiserver
@pytest.mark.usefixtures("examples_again")
def test_the_policy_is_enforced_as_the_page_says(made_cluster: Cluster, teams: Path) -> None:
    def run(step: str) -> None:
        run_as_printed([line for block in blocks(step, "sh") for line in lines(block)], made_cluster, folder=teams)

    def printed(command: str) -> str:
        return shell(command, made_cluster, folder=teams).stdout

    run("4.")
    wait_until(lambda: "5 workloads with 25 GPUs" in printed("gpu-tiers audit"), 60, "the pods of all workloads")
    for command, shown in sessions("5."):
        assert_shown(shown, printed(command))

    run("6.")
    why = "gpu-tiers why-pending job/retrain -n night-batch"
    wait_until(lambda: "was evicted from" in printed(why), 120, "an evicted Job that tells of it")
    usage = "gpu-tiers usage"
    wait_until(lambda: re.search(r"inference .* 12 +0 +0 +0 +12 +0", printed(usage)), 60, "the replicas of chat")
    for command, shown in sessions("6."):
        answer = re.sub(r"gpu-[01]", "gpu-0", _POD.sub(r"\1-xxxxx", printed(command)))
        assert_shown([re.sub(r"gpu-[01]", "gpu-0", _POD.sub(r"\1-xxxxx", line)) for line in shown], answer)
