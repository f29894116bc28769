"""What a text of YAML is before anybody knows what it is about."""

import pytest

from webhook.config.yaml_text import NotYaml, trees

DEFAULTS = """\
limits: &limits {cpu: 8, memory: 64Gi}
trainer:
  resources: &resources {<<: *limits, memory: 128Gi}
sweep: {<<: *resources, cpu: 4}
"""


def test_a_key_that_overrides_a_merged_one_is_not_written_twice() -> None:
    (tree,) = trees(DEFAULTS)
    assert isinstance(tree, dict)
    assert tree["trainer"]["resources"] == {"cpu": 8, "memory": "128Gi"}
    assert tree["sweep"] == {"cpu": 4, "memory": "128Gi"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kind: Pod\nspec:\n  nodeName: a\n  nodeName: b\n", 'not YAML: "nodeName" is written twice, again in line 4'),
        ('kind: Pod\n---\n{"a": 1, "a": 2}\n', 'not YAML: "a" is written twice, again in line 3'),
        ("- name: a\n  name: b\n", 'not YAML: "name" is written twice, again in line 2'),
        ("[" * 100_000, "nested too deep: more than 200 levels"),
        ("- " * 100_000, "nested too deep: more than 200 levels"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(300)), "nested too deep: more than 200 levels"),
    ],
    ids=["twice", "twice in a document of several", "twice in an item", "flow", "sequences", "mappings"],
)
def test_a_text_that_says_two_things_or_never_ends_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(NotYaml) as refused:
        trees(text)
    assert str(refused.value).startswith(sentence)


def test_no_manifest_is_too_deep() -> None:
    assert trees("[" * 200 + "]" * 200)
    assert trees("a: [1, {b: 2}]\n" + "".join(f"b{number}: {{c: -1}}\n" for number in range(500)))
