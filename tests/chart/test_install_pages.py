"""The pages on installing: their values and commands are those of this chart."""

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.docs.markdown import ROOT, Block, Page
from tests.docs.test_commands import for_a_shell

from .conftest import Render
from .helm import CHART, Answer, Chart, Manifest, helm

PAGES = [Page(path) for path in sorted((ROOT / "docs").glob("install*.md"))]
KEEPING = "--reset-then-reuse-values"
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def values_in(block: Block) -> Iterator[Manifest]:
    """The values that a block gives the chart: all of it, or what an Application or a HelmRelease carries."""
    for document in yaml.safe_load_all(block.text):
        spec = document.get("spec", {})
        match document.get("kind"):
            case None:
                yield document
            case "Application":
                yield spec["source"]["helm"]["valuesObject"]
            case "HelmRelease":
                yield spec["values"]


SHOWN = [(block.headings[-1], values) for page in PAGES for block in page.blocks("yaml") for values in values_in(block)]
INSTALLS = re.compile("helm (install|upgrade) gpu-tiers ")
COMMANDS = [(str(page), said) for page in PAGES for said in for_a_shell(page.code()) if INSTALLS.match(said)]


def test_there_are_pages_for_each_kind_of_cluster() -> None:
    assert {heading for heading, _ in SHOWN} >= {"EKS", "GKE", "AKS", "OpenShift", "Argo CD", "Flux"}
    assert len(COMMANDS) > 5


@pytest.mark.parametrize(("heading", "values"), SHOWN, ids=lambda each: each if isinstance(each, str) else "")
def test_the_chart_takes_the_values_of_a_page(render: Render, heading: str, values: Manifest) -> None:
    assert render(**values).one("ValidatingWebhookConfiguration"), heading


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=lambda each: each.removeprefix("docs/"))
def test_the_chart_takes_what_a_command_sets(template: Callable[[Manifest], Answer], page: str, command: str) -> None:
    words = shlex.split(command)
    values: Manifest = {}
    for name, value in (each.split("=", 1) for each in after("--set", words)):
        section = values
        *above, last = name.split(".")
        for each in above:
            section = section.setdefault(each, {})
        section[last] = yaml.safe_load(value)
    answer = template(values)
    assert not answer.code, answer.stderr
    if words[1] == "upgrade":
        assert KEEPING in words, f"{page}: {command} would lose values, or miss new ones"


def after(option: str, words: list[str]) -> list[str]:
    return [word for before, word in pairwise(words) if before == option]


def test_argo_cd_gets_the_crd_once(home: Path) -> None:
    """Argo CD renders with --include-crds."""
    values = {"crds": {"enabled": False}}
    answer = helm("template", "gpu-tiers", str(CHART), "--include-crds", home=home, values=values)
    chart = Chart(each for each in yaml.load_all(answer.stdout, yaml.CSafeLoader) if each)
    crd = chart.one("CustomResourceDefinition")
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_flux_may_append_a_digest_to_the_version(home: Path, tmp_path: Path) -> None:
    """An OCIRepository's digest, behind a plus sign: no label may have one."""
    chart = Path(shutil.copytree(CHART, tmp_path / "gpu-tiers"))
    about = chart / "Chart.yaml"
    about.write_text(re.sub(r"(?m)^(version: .+)$", r"\1+4d2b5a1c9e0f", about.read_text()))
    answer = helm("template", "gpu-tiers", str(chart), home=home)
    assert not answer.code, answer.stderr
    for each in Chart(each for each in yaml.load_all(answer.stdout, yaml.CSafeLoader) if each):
        assert all(LABEL.fullmatch(value) for value in each["metadata"].get("labels", {}).values()), each
    assert "_4d2b5a1c9e0f" in answer.stdout
