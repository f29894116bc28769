"""The YAML text alone, before anybody knows its subject."""

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


def _grown_tenfold(first: str, each: str) -> str:
    """A text of eight lines, each of which names the one before ten times."""
    lines = (f"a{level}: &a{level} {each.format(', '.join([f'*a{level - 1}'] * 10))}\n" for level in range(1, 8))
    return f"a0: &a0 {first}\n{''.join(lines)}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (_grown_tenfold("{x: 1}", "{{<<: [{}]}}"), "not YAML: line 5: merges copy more than 100000 keys"),
        (
            _grown_tenfold("[x]", "[{}]") + "b: !!str [*a7]\n",
            "not YAML: line 9: found a sequence with the tag of a scalar",
        ),
        ("a: !!int {b: 1}\n", "not YAML: line 1: found a mapping with the tag of a scalar"),
    ],
    ids=["merges of merges", "aliases as a text", "a mapping as a number"],
)
def test_a_short_text_that_unfolds_without_end_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(NotYaml) as refused:
        trees(text)
    assert str(refused.value).startswith(sentence)


def test_no_manifest_is_too_deep() -> None:
    assert trees("[" * 200 + "]" * 200)
    assert trees("a: [1, {b: 2}]\n" + "".join(f"b{number}: {{c: -1}}\n" for number in range(500)))
