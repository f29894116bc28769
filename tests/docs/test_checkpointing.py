"""The checkpointing page lists every kind of hook and every annotation, as the code has them."""

from webhook.policy.checkpoint.hook_kinds import REQUIRED, ROWS
from webhook.policy.checkpoint.hook_plan import FIELDS, KNOWN

from .markdown import page

PAGE = page("docs/checkpointing.md").text


def test_each_kind_has_a_row_and_each_row_a_kind() -> None:
    table = [line for line in PAGE.partition("## Kinds\n")[2].partition("\nThe policy")[0].splitlines() if "`" in line]
    assert [row.split("`")[1] for row in table] == [*ROWS]


def test_each_field_stands_with_its_kind_and_its_default() -> None:
    lines = PAGE.splitlines()
    for kind, row in ROWS.items():
        for name, default in row.takes.items():
            (line,) = (line for line in lines if line.startswith(f"| `{FIELDS[name]}` |") and f"| `{kind}` |" in line)
            assert {REQUIRED: "required", True: "true", False: "false"}.get(default, default) in line.rsplit("|", 2)[1]


def test_every_annotation_is_named() -> None:
    assert [key for key in KNOWN if f"`{key}`" not in PAGE] == []
