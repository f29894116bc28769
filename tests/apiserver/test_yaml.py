"""The table of YAML values, asked of kubectl itself: it reads as manifests are read here."""

import json

import pytest

from tests.unit.config.test_yaml_values import READ, REFUSED
from webhook.config.yaml_text import number

from .installed import Installed

pytestmark = pytest.mark.apiserver

HEAD = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: values}\nspec:\n"
LABEL = ("label", "--local", "--output=json", "seen=yes", "--filename=-")


def test_kubectl_reads_each_value_as_it_is_read_here(installed: Installed) -> None:
    text = HEAD + "".join(f"- v: {each}\n" for each in READ)
    found = json.loads(installed.cluster.kubectl(*LABEL, input=text).stdout, parse_int=number)["spec"]
    assert {text: each["v"] for text, each in zip(READ, found, strict=True)} == READ


@pytest.mark.parametrize("text", REFUSED)
def test_kubectl_refuses_what_is_refused_here(installed: Installed, text: str) -> None:
    asked = installed.cluster.kubectl(*LABEL, input=f"{HEAD}- v: {text}\n", check=False)
    assert "error converting YAML to JSON" in asked.stderr
