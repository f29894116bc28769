"""Reads YAML texts as trees. Too deep a nesting is an error, and so is a key written twice if nobody asks for those."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from yaml.reader import ReaderError

from webhook.config.yaml_values import MERGE, KubectlLoader

try:
    from yaml import CSafeDumper as Dumper
except ImportError:  # PyYAML was built without libyaml: ten times as slow, and the same
    from yaml import SafeDumper as Dumper  # type: ignore[assignment]

__all__ = ["Dumper", "NotYaml", "Twice", "items_of", "placed_trees", "trees"]

DEEPEST = 200
"""Levels; no Kubernetes object has half as many. libyaml has no limit of its own, and ends the process."""

NO_VALUE = (ValueError, LookupError, AttributeError, TypeError)
"""What is raised for a text whose tag it does not fit, and for a number that JSON does not have: `.inf`."""

_KINDS = {"int": "number", "float": "number of JSON", "bool": "boolean"}


class NotYaml(Exception):  # noqa: N818 - an answer to whoever wrote the text
    """A text that can't be read; the sentence says why, and where."""


def trees(text: str) -> list[object]:
    """The documents of a text, None for an empty one. Raises NotYaml."""
    return [tree for tree, _ in placed_trees(text)]


class Twice(NamedTuple):
    """A key that is written again in one mapping, at a line: the last one counts."""

    key: str
    line: int


def placed_trees(text: str, twice: list[Twice] | None = None) -> list[tuple[object, yaml.Node]]:
    """The same, each with the node that it was made of, which knows its lines. Raises NotYaml.

    Keys that are written twice are added to `twice`, where that is given.
    """
    try:
        # Each level takes one of these marks, so that most texts need no second look.
        if (sum(map(text.count, "[{-?:")) > DEEPEST) and _depth(text) > DEEPEST:
            raise NotYaml(f"nested too deep: more than {DEEPEST} levels")
        return list(_placed(_Loader(text, twice)))
    except (yaml.YAMLError, RecursionError, UnicodeEncodeError) as error:
        raise NotYaml(f"not YAML: {_why(error)}") from None


def _why(error: Exception) -> str:
    """Such as: `line 4: did not find expected ',' or ']', while parsing a flow sequence from line 3`."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        began = f", {error.context}" if error.context else ""
        if began and error.context_mark:
            began += f" from line {error.context_mark.line + 1}"
        return f"line {error.problem_mark.line + 1}: {error.problem}{began}"
    if isinstance(error, ReaderError):
        return f"{error.reason} (character {error.position})"
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def _placed(loader: "_Loader") -> Iterator[tuple[object, yaml.Node]]:
    try:
        while loader.check_node():
            node: Any = loader.get_node()
            yield loader.construct_document(node), node
    finally:
        loader.dispose()


def items_of(node: yaml.Node) -> list[yaml.Node]:
    """The nodes of the list under `items` of a mapping."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    lists = [value for key, value in pairs if key.value == "items" and isinstance(value, yaml.SequenceNode)]
    return lists[-1].value if lists else []  # of a key that is written again the last counts


class _Loader(KubectlLoader):
    """Looks for keys written twice before merges (`<<`) write keys of their own into the nodes."""

    def __init__(self, text: str, twice: list[Twice] | None = None) -> None:
        super().__init__(text)
        self._twice = twice

    def construct_document(self, node: yaml.Node) -> object:
        for mapping in _nodes(node):
            seen: set[str] = set()
            for key, _ in mapping.value if isinstance(mapping, yaml.MappingNode) else ():
                if isinstance(key, yaml.ScalarNode) and key.value in seen and key.tag != MERGE:
                    again = Twice(key.value, key.start_mark.line + 1)
                    if self._twice is None:
                        raise NotYaml(f'not YAML: "{again.key}" is written twice, again in line {again.line}')
                    self._twice.append(again)
                seen.add(str(key.value))
        try:
            return super().construct_document(node)
        except NO_VALUE:
            raise NotYaml(f"not YAML: {next(_no_values(node), 'a value is none')}") from None


def _no_values(node: yaml.Node) -> Iterator[str]:
    """What is said of the values that PyYAML can't make."""
    for each in _nodes(node):
        try:
            if isinstance(each, yaml.ScalarNode):
                KubectlLoader("").construct_object(each)
        except NO_VALUE:
            kind, line = _KINDS.get(each.tag.rpartition(":")[2], "value"), each.start_mark.line + 1
            yield f'line {line}: "{each.value[:63]}" is no {kind}; if it is text, write it in quotes'


def _nodes(node: yaml.Node) -> Iterator[yaml.Node]:
    """Every node of a document once, however many aliases lead to it."""
    waiting, met = [node], set()
    while waiting:
        each = waiting.pop()
        if id(each) in met:
            continue
        met.add(id(each))
        yield each
        if isinstance(each, yaml.MappingNode):
            waiting.extend(part for pair in each.value for part in pair)
        elif isinstance(each, yaml.SequenceNode):
            waiting.extend(each.value)


def _depth(text: str) -> int:
    depth = deepest = 0
    for event in yaml.parse(text, Loader=KubectlLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            deepest = max(deepest, depth)
            if depth > DEEPEST:
                break
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return deepest
