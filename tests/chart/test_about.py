"""The entry of the chart in a catalogue."""

import re

import yaml

from .helm import CHART, ROOT

ABOUT = yaml.safe_load((CHART / "Chart.yaml").read_text())
CRD = yaml.safe_load((CHART / "crds" / "tenantquotas.gpu-tiers.dev.yaml").read_text())


def test_the_crd_is_shown_with_an_example_that_has_its_fields() -> None:
    (crd,) = yaml.safe_load(ABOUT["annotations"]["artifacthub.io/crds"])
    (version,) = CRD["spec"]["versions"]
    assert (crd["kind"], crd["name"]) == (CRD["spec"]["names"]["kind"], CRD["metadata"]["name"])
    assert crd["version"] == version["name"]
    (example,) = yaml.safe_load(ABOUT["annotations"]["artifacthub.io/crdsExamples"])
    assert example["kind"] == crd["kind"]
    assert set(example["spec"]) <= set(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])


def test_its_icon_lies_where_the_project_is() -> None:
    base = ABOUT["home"].replace("https://github.com", "https://raw.githubusercontent.com")
    assert (ROOT / ABOUT["icon"].removeprefix(f"{base}/main/")).read_text().startswith("<svg ")


def test_every_annotation_is_text_as_helm_wants_it() -> None:
    assert all(isinstance(value, str) for value in ABOUT["annotations"].values())


def test_the_readme_describes_every_value() -> None:
    text = (CHART / "README.md").read_text()
    for name in yaml.safe_load((CHART / "values.yaml").read_text()):
        assert re.search(rf"\| `{name}[.`]", text), name
