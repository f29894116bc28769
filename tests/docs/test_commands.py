"""Commands that a page names exist; those in ```sh blocks are run.

A command ends with 0, or with what its comment says: `# ends with 1`.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .markdown import ROOT, Page, pages
from .markdown import page as page_of

_MAKE = re.compile(r"(?:^|\$\()make ([a-z][a-z-]*)", re.MULTILINE)
_ENDS_WITH = re.compile(r"# ends with (\d+)")
_FOR_A_SHELL = re.compile(r"^(?:\$ )?(?:kubectl|helm|docker|make|(?:\.venv/bin/)?gpu-tiers) .*$", re.MULTILINE)
_QUOTED = re.compile(r"'[^']*'")


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_every_make_target_exists() -> None:
    asked = {(str(page), target) for page in pages() for target in _MAKE.findall(page.code())}
    assert {target for _, target in asked} >= {"demo", "test", "cluster", "cluster-down", "generate"}
    assert [each for each in sorted(asked) if each[1] not in targets()] == []


def gpu_tiers_commands() -> Iterator[tuple[Page, str]]:
    for page in pages():
        for block in page.blocks("sh"):
            for line in block.text.splitlines():
                if re.match(r"(\.venv/bin/)?gpu-tiers ", line):
                    yield page, line.removeprefix(".venv/bin/")


@pytest.mark.parametrize(("page", "command"), list(gpu_tiers_commands()), ids=str)
def test_every_gpu_tiers_command_ends_as_the_page_says(page: Page, command: str, tmp_path: Path) -> None:
    said = _ENDS_WITH.search(command)
    beside = Path(sys.executable).parent
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{beside}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == int(said[1] if said else 0), f"{page}: {run.stdout}{run.stderr}"


def for_a_shell(text: str) -> list[str]:
    """The commands of a text, without their comments; a backslash at a line's end continues it."""
    return [found.partition(" # ")[0] for found in _FOR_A_SHELL.findall(text.replace("\\\n", " "))]


def test_a_backslash_stands_within_single_quotes_or_the_shell_takes_it() -> None:
    notes = (ROOT / "charts" / "gpu-tiers" / "templates" / "NOTES.txt").read_text(encoding="utf-8")
    texts = {str(each): each.code() for each in pages()} | {"NOTES.txt": re.sub("^ +", "", notes, flags=re.MULTILINE)}
    commands = [(where, command) for where, text in texts.items() for command in for_a_shell(text)]
    assert any("\\" in command for _, command in commands)
    assert [each for each in commands if "\\" in _QUOTED.sub("", each[1])] == []


def test_after_a_failed_make_cluster_the_readme_reaches_no_other_cluster(tmp_path: Path) -> None:
    (block,) = (each for each in page_of("README.md").blocks("sh") if "On this machine" in each.headings)
    settings = block.text.partition("\nkubectl ")[0]
    run = subprocess.run(
        ["bash", "-c", f'make() {{ return 1; }}\n{settings}\necho "$KUBECONFIG"'],
        env={**os.environ, "HOME": str(tmp_path), "KUBECONFIG": "the reader's own"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.startswith(str(tmp_path))
    assert not Path(run.stdout.strip()).exists()


def test_commands_for_a_cluster_stand_where_they_are_run() -> None:
    elsewhere = [
        str(page)
        for page in pages()
        for block in page.blocks("sh")
        if re.search(r"^(kubectl|helm)\b", block.text, re.MULTILINE) and "Quick start" not in block.headings
    ]
    assert elsewhere == []
