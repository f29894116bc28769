"""Files for releases and for visitors on GitHub: workflows, templates, and the contents of the image."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from localcluster.binaries import BinaryError, find, release_binaries
from localcluster.for_tests import missing
from localcluster.go_toolchain import GoError

from .markdown import ROOT
from .test_commands import targets

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))


@pytest.mark.release
def test_actionlint_finds_nothing() -> None:
    try:
        actionlint = find(release_binaries()["actionlint"])
    except (BinaryError, GoError) as error:
        missing(f"no actionlint: {error}")
    run = subprocess.run([actionlint, "-no-color", *WORKFLOWS], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda each: each.name)
def test_a_workflow_runs_nothing_that_may_change_and_has_no_more_rights_than_it_names(workflow: Path) -> None:
    text = workflow.read_text(encoding="utf-8")
    actions = re.findall(r"uses: (\S+)", text)
    assert [each for each in actions if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", each)] == []
    assert "permissions" in yaml.safe_load(text)
    asked = {target for line in re.findall(r"\bmake ([a-z -]+)$", text, re.MULTILINE) for target in line.split()}
    assert asked <= targets()


def test_a_release_builds_for_both_architectures_and_signs_what_it_pushed_by_digest() -> None:
    text = (GITHUB / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "--platform=linux/amd64,linux/arm64" in text
    assert "--sbom=true" in text
    assert "dist/* build/sbom.cdx.json --clobber" in text, "the bill of materials as CycloneDX, beside chart and wheel"
    assert len(re.findall(r"cosign sign --yes .*@\$", text)) == 2, "image and chart"
    pushing = [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"] if pushes(step)]
    assert len(pushing) == 4
    assert {step["if"] for step in pushing} == {"github.ref_type == 'tag'"}


def pushes(step: dict[str, str]) -> bool:
    """Return whether a step logs in, signs or pushes; the build decides by itself."""
    run = step.get("run", "")
    return "buildx" not in run and bool(re.search(r"docker login|cosign sign|helm push|grep -qx", run))


def test_the_image_stands_on_a_base_that_can_not_change_and_says_what_it_is() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^ARG BASE=python:3\.\d+-slim@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    labels = set(re.findall(r"org\.opencontainers\.image\.(\w+)=", text))
    assert labels == {"title", "description", "licenses", "source", "documentation", "version", "revision"}


@pytest.mark.parametrize("form", FORMS, ids=lambda each: each.name)
def test_an_issue_form_is_one(form: Path) -> None:
    read = yaml.safe_load(form.read_text(encoding="utf-8"))
    if form.name != "config.yml":
        assert {"name", "description", "body"} <= set(read)
        assert len({each["id"] for each in read["body"]}) == len(read["body"])


def test_a_visitor_finds_what_github_looks_for() -> None:
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", ".github/pull_request_template.md"):
        assert (ROOT / name).is_file(), name
