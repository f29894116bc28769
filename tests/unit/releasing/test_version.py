"""`make release VERSION=0.2.0` sets one version in every place that says it, and cuts the changelog."""

from datetime import date
from pathlib import Path

import pytest

from releasing.changelog import cut
from releasing.version import ReleaseError, agreed, checked, state, stated

ROOT = Path(__file__).parents[3]
DAY = date(2027, 1, 31)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The few files that say a version."""
    (tmp_path / "charts" / "gpu-tiers").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\nrequires-python = ">=3.11"\n')
    (tmp_path / "charts" / "gpu-tiers" / "Chart.yaml").write_text(
        'version: 0.1.0\nappVersion: 0.1.0\nkubeVersion: "1"\n'
    )
    (tmp_path / "README.md").write_text("docker build -t registry.example.com/gpu-tiers:0.1.0 .\n")
    (tmp_path / "docs" / "install.md").write_text("`<your registry>/gpu-tiers:0.1.0`. Helm 3.17.0\n")
    return tmp_path


def test_every_place_says_one_version() -> None:
    assert agreed(ROOT)
    assert {str(file) for file, _ in stated(ROOT)} >= {"pyproject.toml", "charts/gpu-tiers/Chart.yaml", "README.md"}


def test_a_release_sets_it_everywhere_and_nothing_else(project: Path) -> None:
    state(project, "0.2.0-rc.1")
    assert agreed(project) == "0.2.0-rc.1"
    assert len(list(stated(project))) == 5
    assert (project / "pyproject.toml").read_text().count(">=3.11") == 1
    assert (project / "docs" / "install.md").read_text() == "`<your registry>/gpu-tiers:0.2.0-rc.1`. Helm 3.17.0\n"


def test_a_place_that_says_another_is_named(project: Path) -> None:
    (project / "README.md").write_text("docker push registry.example.com/gpu-tiers:0.0.9\n")
    with pytest.raises(ReleaseError, match=r"README\.md says 0\.0\.9, and pyproject\.toml says 0\.1\.0; make them one"):
        agreed(project)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v0.2.0", r"'v0\.2\.0' is no version; write one such as 0\.2\.0"),
        ("0.2", r"'0\.2' is no version"),
        ("", r"'' is no version"),
        ("0.1.0", r"0\.1\.0 does not come after 0\.1\.0; write a later one"),
        ("0.1.0-rc.1", r"0\.1\.0-rc\.1 does not come after 0\.1\.0"),
    ],
)
def test_what_is_no_later_version_is_refused(version: str, said: str) -> None:
    with pytest.raises(ReleaseError, match=said):
        checked(version, "0.1.0")


def test_ten_comes_after_nine_and_a_release_after_its_candidates() -> None:
    assert checked("0.10.0", "0.9.0") == "0.10.0"
    assert checked("1.0.0", "1.0.0-rc.2") == "1.0.0"


def test_what_was_unreleased_becomes_the_version() -> None:
    text = "# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n\n## 0.1.0 (2026-12-01)\n\n- The first.\n"
    assert cut(text, "0.2.0", DAY) == (
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2027-01-31)\n\n### Added\n\n- A thing.\n\n"
        "## 0.1.0 (2026-12-01)\n\n- The first.\n"
    )


def test_nothing_unreleased_is_no_release() -> None:
    with pytest.raises(ReleaseError, match="has nothing below"):
        cut("# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- The first.\n", "0.2.0", DAY)
