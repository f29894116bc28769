"""Reads YAML texts as kubectl does, so that a manifest is read here as the API server gets it.

kubectl reads YAML by sigs.k8s.io/yaml and go.yaml.in/yaml/v2, and sends JSON. That is YAML 1.1 with exceptions: `y` and
`n` are booleans, `0o17` is a number and `1:30` is none, dates stay text, keys become text. The rules here are those of
resolve.go and decode.go there; tests/unit/config/test_yaml_values.py has kubectl's own results. Too deep a nesting is
an error, and so is a key that is written twice, unless the caller asks for those.
"""

import base64
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml
from yaml.constructor import ConstructorError
from yaml.reader import ReaderError

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML was built without libyaml: it is ten times as slow, with the same results
    from yaml import SafeLoader  # type: ignore[assignment]

_CORE = "tag:yaml.org,2002:"
MERGE = f"{_CORE}merge"
_BOOL = re.compile("y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF")
_NULL = re.compile("|~|null|Null|NULL")
_BEYOND = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
DEEPEST = 200
"""Most levels. No Kubernetes object has half as many. libyaml has no limit of its own, and ends the process."""

NO_VALUE = (ValueError, LookupError, AttributeError, TypeError)
"""The errors for a text that does not fit its tag, and for a number that JSON does not have, such as `.inf`."""

_KINDS = {"int": "number", "float": "number of JSON", "bool": "boolean"}

_LEAST, _MOST, _MOST_UNSIGNED = -(2**63), 2**63 - 1, 2**64 - 1
LONGEST = 100
"""Characters of a whole number, enough for 64 bits in any base. A longer one is a float, as in Go."""
_BASES = {"x": 16, "o": 8, "b": 2}
MOST_MERGED = 100_000
"""Keys that the merges of a text may copy. Merges of merges multiply them: ten lines could copy a billion keys."""


def tag_of(text: str) -> str:
    """Return the tag of a plain scalar, by how it is written."""
    if _BOOL.fullmatch(text):
        return f"{_CORE}bool"
    if _NULL.fullmatch(text):
        return f"{_CORE}null"
    if text == "<<":
        return MERGE
    if _BEYOND.fullmatch(text) or number(text) is not None:
        return f"{_CORE}float"
    return f"{_CORE}str"


def number(text: str) -> int | float | None:
    """Return a text as a number of JSON, a whole one as an int; None for any other text."""
    plain = text if text.startswith(".") else text.replace("_", "")
    if not text[:1].isascii() or text[:1] not in "+-.0123456789" or not plain.isascii():
        return None
    if len(plain) <= LONGEST and _INT.fullmatch(plain):
        sign, digits = (-1 if plain.startswith("-") else 1), plain.lstrip("+-")
        base = _BASES.get(digits[1:2].lower(), 8 if digits.startswith("0") else 10)
        found = sign * int(digits[2:] if digits[1:2].lower() in _BASES else digits, base)
        if _LEAST <= found <= _MOST:
            return found
        if found <= _MOST_UNSIGNED and not plain.startswith(("+", "-")):
            return float(found)
    if not _FLOAT.fullmatch(plain):
        return None
    real = float(plain)
    if math.isinf(real):
        return None
    return int(real) if real.is_integer() and _LEAST <= real <= _MOST else real


class NotYaml(Exception):  # noqa: N818 - an answer to the author of the text
    """A text that can't be read. The message has the reason and the line."""


class Twice(NamedTuple):
    """A key that is written again in one mapping, and its line. The last one counts."""

    key: str
    line: int


def _wrong(mapping: yaml.Node, part: yaml.Node, problem: str) -> ConstructorError:
    return ConstructorError("while constructing a mapping", mapping.start_mark, problem, part.start_mark)


class KubectlLoader(SafeLoader):
    """Loads a text as kubectl does. Keys written twice are added to `twice`; without it they are an error."""

    def __init__(self, text: str, twice: list[Twice] | None = None) -> None:
        super().__init__(text)
        self._twice, self._merged = twice, 0

    def construct_document(self, node: yaml.Node) -> object:
        # Keys written twice are found before merges (`<<`) write their keys into the nodes.
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

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return tag_of(value) if implicit[0] else f"{_CORE}str"
        return f"{_CORE}seq" if kind is yaml.SequenceNode else f"{_CORE}map"

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace merges (`<<`) by their keys. A later key overrides, wherever it comes from."""
        pairs: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in node.value:
            if key.tag != MERGE:
                pairs.append((key, value))
                continue
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for each in reversed(merged):  # the first of them counts
                if not isinstance(each, yaml.MappingNode):
                    raise _wrong(node, each, f"expected a mapping or list of mappings for merging, but found {each.id}")
                self.flatten_mapping(each)
                self._merged += len(each.value)
                if self._merged > MOST_MERGED:
                    raise _wrong(node, each, f"merges copy more than {MOST_MERGED} keys")
                pairs.extend(each.value)
        node.value = pairs

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        """Return a mapping whose keys are text, as in JSON."""
        self.flatten_mapping(node)
        found = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _wrong(node, key, f"found a {key.id} as a key")
            name = self.construct_object(key, deep=True)
            if name is None:
                raise _wrong(node, key, "found null as a key")
            shown = str(name).lower() if isinstance(name, bool) else str(name)
            found[shown] = self.construct_object(value, deep=deep)
        return found


def _as_it_is(loader: KubectlLoader, node: yaml.Node) -> Any:
    """Return the value of an unknown tag, without the tag."""
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    return loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else node.value


_SCALARS: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text[:2].lower() in ("y", "ye", "tr", "on"),
    "null": lambda _: None,
    "int": number,
    "float": number,
    "str": str,
    "merge": str,
    "timestamp": str,
    "binary": lambda text: base64.b64decode(text, validate=False).decode(),
}
_FORMS = {"bool": _BOOL, "null": _NULL}
"""The texts that a tag accepts; any other text is an error."""


def _of_scalar(tag: str) -> Callable[[KubectlLoader, yaml.Node], Any]:
    """Return the constructor of a tag that only a scalar may have."""

    def construct(_: KubectlLoader, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            kind = "mapping" if isinstance(node, yaml.MappingNode) else "sequence"
            raise ConstructorError(None, None, f"found a {kind} with the tag of a scalar", node.start_mark)
        value = _SCALARS[tag](node.value)
        if (value is None and tag != "null") or (tag in _FORMS and not _FORMS[tag].fullmatch(node.value)):
            raise ValueError(node.value)
        return value

    return construct


for _name in _SCALARS:
    KubectlLoader.add_constructor(f"{_CORE}{_name}", _of_scalar(_name))
for _name in ("set", "omap", "pairs"):
    KubectlLoader.add_constructor(f"{_CORE}{_name}", _as_it_is)
KubectlLoader.add_constructor(None, _as_it_is)


try:
    from yaml import CSafeDumper as Dumper
except ImportError:  # PyYAML was built without libyaml: it is ten times as slow, with the same results
    from yaml import SafeDumper as Dumper  # type: ignore[assignment]

__all__ = ["Dumper", "NotYaml", "Twice", "items_of", "placed_trees", "trees"]


def trees(text: str) -> list[object]:
    """Return the documents of a text, None for an empty one. Raises NotYaml."""
    return [tree for tree, _ in placed_trees(text)]


def placed_trees(text: str, twice: list[Twice] | None = None) -> list[tuple[object, yaml.Node]]:
    """Return the documents, each with its node, which has the lines. Raises NotYaml.

    Keys that are written twice are added to `twice`, if that is given.
    """
    try:
        # Each level takes one of these marks, so that most texts need no second look.
        if sum(map(text.count, "[{-?:")) > DEEPEST and _is_too_deep(text):
            raise NotYaml(f"nested too deep: more than {DEEPEST} levels")
        loader, found = KubectlLoader(text, twice), []
        try:
            while loader.check_node():
                node: Any = loader.get_node()
                found.append((loader.construct_document(node), node))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        # Such as: line 4: did not find expected ',' or ']', while parsing a flow sequence from line 3
        began = f", {error.context}" if error.context else ""
        if began and error.context_mark:
            began += f" from line {error.context_mark.line + 1}"
        line = f"line {error.problem_mark.line + 1}: {error.problem}{began}" if error.problem_mark else str(error)
        raise NotYaml(f"not YAML: {line}") from None
    except ReaderError as error:
        raise NotYaml(f"not YAML: {error.reason} (character {error.position})") from None
    except RecursionError:
        raise NotYaml("not YAML: nested too deep") from None
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise NotYaml(f"not YAML: {error}") from None
    return found


def items_of(node: yaml.Node) -> list[yaml.Node]:
    """Return the nodes of the list under `items` of a mapping."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    lists = [value for key, value in pairs if key.value == "items" and isinstance(value, yaml.SequenceNode)]
    return lists[-1].value if lists else []  # if a key is written again, the last one counts


def _no_values(node: yaml.Node) -> Iterator[str]:
    """Yield a sentence for each value that PyYAML can't construct."""
    for each in _nodes(node):
        try:
            if isinstance(each, yaml.ScalarNode):
                KubectlLoader("").construct_object(each)
        except NO_VALUE:
            kind, line = _KINDS.get(each.tag.rpartition(":")[2], "value"), each.start_mark.line + 1
            yield f'line {line}: "{each.value[:63]}" is not a {kind}; if it is text, write it in quotes'


def _nodes(node: yaml.Node) -> Iterator[yaml.Node]:
    """Yield every node of a document once, however many aliases lead to it."""
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


def _is_too_deep(text: str) -> bool:
    depth = 0
    for event in yaml.parse(text, Loader=KubectlLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            return True
    return False
