"""No shipped code reads a sentence that we wrote: it asks values.

Three things hold it so. Refusals, warnings and steps have no methods of a text, as mypy says. Policy and what lies
below it can't import what makes sentences, as lint-imports says, but for the two files that write what is stored. And
here: no code looks for words within a text, but for those that others write. They are told by constants with a space
or a bracket in what is compared, cut or searched.

It can't see a text that is compared with another one that was put together, nor what a template or a person's test of a
policy compares.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import webhook

ROOT = Path(webhook.__file__).parent
READING = {
    "startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix", "split", "rsplit", "find",
    "index", "count", "match", "fullmatch", "search", "sub", "findall", "finditer", "compile",
}  # fmt: skip
WRITTEN_BY_OTHERS = {
    "objects/view.py": "msgspec's errors",
    "config/errors.py": "pydantic's errors",
    "kube/errors.py": "the API server's errors",
    "kube/connection.py": "what the client library logs of a credential plugin",
    "report/waiting.py": "the API server's words before ours, in the events of controllers",
    "cli/manifests/inputs.py": "Helm's comments",
    "cli/open_gates.py": "the API server's words before those of a policy",
    "cli/review/sarif.py": "how a package names its pages",
    "controllers/evicted_pods.py": "the scheduler's words",
    "policy/checkpoint/work_lost.py": "the line that a hook writes in its pod, and the kubelet keeps",
    "policy/checkpoint/programs.py": "commands of pods",
    "policy/checkpoint/hook_kinds.py": "the script of a hook, which stands on pods: written and known again here",
    "page/posture_picture.py": "the page's own style sheet",
    "controllers/backstop_writer.py": "the API server's errors",
    "cli/lint.py": "a name for what a rule needs, of a few",
    "cli/usage.py": "a name for what becomes of pods beyond the quota, of a few",
    "policy/classification": "commands, names and images of workloads",
    "policy/assignment/assigned_by.py": "the annotation that stands on pods: the one that is written and read again",
}


def constants(tree: ast.Module) -> dict[str, list[str]]:
    """The texts of a module's own constants by name; of a map its keys."""
    found: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            keys = [each for each in node.value.keys if each] if isinstance(node.value, ast.Dict) else [node.value]
            names = [each.id for each in targets if isinstance(each, ast.Name)]
            found |= {name: [text for each in keys for text in texts(each, {})] for name in names}
    return found


def texts(node: ast.AST, named: dict[str, list[str]]) -> list[str]:
    found: list[str] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            found.append(each.value)
        elif isinstance(each, ast.Name):
            found += named.get(each.id, [])
    return found


def is_prose(text: str) -> bool:
    """Return whether a text is part of a sentence: words with a space next to them, or the bracket of an id."""
    is_id = text[:1] == "[" and text[1:2].isalpha() and "a-z" not in text
    return is_id or (" " in text and any(each.isalpha() for each in text))


def read(tree: ast.Module) -> Iterator[tuple[int, str]]:
    named = constants(tree)
    for node in ast.walk(tree):
        looked_for: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READING:
            looked_for = [*node.args[:1]]
        elif isinstance(node, ast.Compare) and any(
            isinstance(op, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for op in node.ops
        ):
            looked_for = [
                each
                for each in (node.left, *node.comparators)
                if isinstance(each, ast.Constant | ast.Name | ast.JoinedStr)
            ]
        for each in looked_for:
            yield from ((node.lineno, text) for text in texts(each, named) if is_prose(text))


def test_no_code_looks_for_our_words() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text!r}"
        for file in sorted(ROOT.rglob("*.py"))
        for line, text in read(ast.parse(file.read_text()))
        if not str(file.relative_to(ROOT)).startswith(tuple(WRITTEN_BY_OTHERS))
    ]
    assert found == []


def test_it_sees_what_it_should() -> None:
    code = (
        'MARK = "; demoted from "\ndef f(x):\n return x.startswith("[id]") or MARK in x or x.partition(" Would fit: ")'
    )
    assert {text for _, text in read(ast.parse(code))} == {"[id]", "; demoted from ", " Would fit: "}
