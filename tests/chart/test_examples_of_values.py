"""Helm's refusal of a wrong value has no example, so the schema and the tables have one of each."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from .conftest import Render
from .helm import CHART, Chart, Manifest, helm
from .test_bad_values import SCHEMA, default_of, merged, values_of
from .test_bad_values import Path as ValuePath

ALONE: dict[ValuePath, Manifest] = {
    ("webhook", "url"): {},
    ("webhook", "user"): {"webhook": {"url": "https://gpu-tiers.example.com"}},
    ("certificates", "caBundle"): {"certificates": {"source": "files"}},
}
"""What does not go with the others, and what it needs: with an address the chart makes no pods."""
ALL_ON: Manifest = {
    "certificates": {"source": "cert-manager"},
    "metrics": {name: {"enabled": True} for name in ("serviceMonitor", "prometheusRule", "dashboard")},
    "page": {"authentication": {"enabled": True}},
    "reports": {"enabled": True},
}


def values_in(schema: Manifest, above: ValuePath = ()) -> Iterator[tuple[ValuePath, Manifest]]:
    """Yield each value with its schema; the whole policy is one."""
    for name, each in schema["properties"].items():
        if "properties" in each and name != "policy":
            yield from values_in(each, (*above, name))
        else:
            yield (*above, name), each


VALUES = dict(values_in(SCHEMA))
EXAMPLES = {path: schema["examples"][0] for path, schema in VALUES.items() if "examples" in schema}


def every_example() -> Manifest:
    """Return the examples together, with what they are for turned on."""
    return merged(values_of({path: each for path, each in EXAMPLES.items() if path not in ALONE}), ALL_ON)


def test_every_value_has_an_example_or_a_default_that_is_one() -> None:
    empty = {path for path in VALUES if default_of(path) in (None, "", [], {})}
    assert empty == set(EXAMPLES)


def test_each_example_is_in_the_tables() -> None:
    for file in (CHART / "README.md", CHART.parents[1] / "docs" / "values.md"):
        lines = {line.split("`")[1]: line for line in file.read_text().splitlines() if line.startswith("| `")}
        for path, example in EXAMPLES.items():
            if file.name == "values.md" and path[0].endswith("Probe"):
                assert path[0] in lines
                continue
            written = example if isinstance(example, str) else json.dumps(example)
            assert f"Example: `{written}`." in lines[".".join(path)]


def test_the_chart_takes_every_example_together(render: Render) -> None:
    chart = render(**every_example())
    assert chart.one("Deployment")["spec"]["template"]["spec"]["hostUsers"] is False


@pytest.mark.release
def test_helm_4_takes_every_example_together(render: Render, helm_4: str, home: Path) -> None:
    values = every_example()
    answer = helm("template", "gpu-tiers", str(CHART), home=home, values=values, program=helm_4)
    assert not answer.code, answer.stderr
    assert len(Chart(yaml.load_all(answer.stdout, yaml.CSafeLoader))) >= len(render(**values))


def test_an_example_is_what_the_chart_writes(render: Render) -> None:
    text = json.dumps(render(**every_example()), default=str)
    separate = {path: merged(values_of({path: EXAMPLES[path]}), needs) for path, needs in ALONE.items()}
    alone = {path: json.dumps(render(**values), default=str) for path, values in separate.items()}
    for path, example in EXAMPLES.items():
        if path not in UNSEEN:
            written = alone.get(path, text)
            missing = [word for word in words(example) if json.dumps(word)[1:-1] not in written]
            assert not missing, path


UNSEEN = {("global", "imageRegistry"), ("image", "tag")}
"""Another value comes before them: image.registry, image.digest."""


def words(example: object) -> Iterator[str]:
    """Yield its texts and numbers."""
    if isinstance(example, dict):
        for key, value in example.items():
            yield key
            yield from words(value)
    elif isinstance(example, list):
        for each in example:
            yield from words(each)
    else:
        yield str(example).lower() if isinstance(example, bool) else str(example)
