"""Commands that a page names exist; those in ```sh blocks are run.

A command ends with 0, or with what its comment says: `# ends with 1`. Those that ask a cluster are run by
test_quick_start.py. Before a block that no test can run a comment says why:
`<!-- not run: the name is yours -->`.
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
from .shell import COMMAND, ELSEWHERE, ENDS_WITH, asks_a_cluster, lines
from .test_quick_start import ON_A_CLUSTER_OF_YOUR_OWN, WHERE_IT_RUNS

_MAKE = re.compile(r"(?:^|\$\()make ([a-z][a-z-]*)", re.MULTILINE)
_FOR_A_SHELL = re.compile(r"^(?:\$ )?(?:kubectl|helm|docker|make|(?:\.venv/bin/)?gpu-tiers) .*$", re.MULTILINE)
_QUOTED = re.compile(r"'[^']*'")
SESSIONS = {
    ("README.md", "What a researcher reads"): "tests/docs/test_quick_start.py",
    ("docs/questions.md", "Why is my pod pending? Who took my GPUs?"): "tests/docs/test_questions.py",
    ("docs/gangs.md", "Gangs"): "tests/apiserver/test_gangs.py",
    ("docs/three-teams.md", "3. Try it offline"): "tests/docs/test_three_teams.py",
    ("docs/three-teams.md", "5. Watch"): "tests/docs/test_three_teams.py",
    ("docs/three-teams.md", "6. Enforce"): "tests/docs/test_three_teams.py",
}
"""Sections whose ```console blocks show a session, and the test in which it happens."""
IN_OTHER_HANDS = ("docs/install", "docs/testing-policies", "docs/three-teams")
"""Pages whose commands are run by tests of their own."""
NOT_RUN = 27
"""How many commands stand in blocks that say why they are not run. Two restore a backup: a chart's test runs them."""


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_every_make_target_exists() -> None:
    asked = {(str(page), target) for page in pages() for target in _MAKE.findall(page.code())}
    assert {target for _, target in asked} >= {"demo", "test", "cluster", "cluster-down", "generate"}
    assert [each for each in sorted(asked) if each[1] not in targets()] == []


def test_make_help_names_every_target() -> None:
    command = ["make", "--no-print-directory", "help"]  # make test is a make of its own
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in output.splitlines()} == targets()
    assert all(len(line.split()) > 2 for line in output.splitlines())


def gpu_tiers_commands() -> Iterator[tuple[Page, str]]:
    for page in pages():
        for block in page.blocks("sh"):
            for line in lines(block):
                if re.match(r"(\.venv/bin/|cat .* \| )?gpu-tiers ", line) and not asks_a_cluster(block):
                    yield page, line.removeprefix(".venv/bin/")


@pytest.mark.parametrize(("page", "command"), list(gpu_tiers_commands()), ids=str)
def test_every_gpu_tiers_command_ends_as_the_page_says(page: Page, command: str, tmp_path: Path) -> None:
    said = ENDS_WITH.search(command)
    folder = Path(sys.executable).parent
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)},
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
    run = {*WHERE_IT_RUNS, *ON_A_CLUSTER_OF_YOUR_OWN}
    blocks = [(str(page), block) for page in pages() for block in page.blocks("sh") if asks_a_cluster(block)]
    elsewhere = [each for each in blocks if each[0] not in run and not each[0].startswith(IN_OTHER_HANDS)]
    assert [page for page, block in elsewhere if "Quick start" not in block.headings] == []


def test_every_command_is_run_or_says_why_not() -> None:
    unsaid = [(page, command) for page, why, command in not_in_sh_blocks() if not why]
    assert unsaid == []


def test_few_are_not_run() -> None:
    """A command that no test runs may be wrong: whoever adds one counts it here."""
    marked = [(page, command) for page, why, command in not_in_sh_blocks() if why]
    assert len(marked) == NOT_RUN, marked


def test_what_another_test_runs_is_run_there() -> None:
    assert [test for test in {*ELSEWHERE.values(), *SESSIONS.values()} if not (ROOT / test).exists()] == []


def not_in_sh_blocks() -> Iterator[tuple[str, str | None, str]]:
    """Commands in blocks that are not run, and why; but for those of sessions that another test has."""
    for page in pages():
        for block in page.blocks():
            session = block.language == "console" and any((str(page), above) in SESSIONS for above in block.headings)
            if block.language in {"", "console"} and not session and not str(page).startswith(IN_OTHER_HANDS):
                yield from ((str(page), block.not_run, command) for command in COMMAND.findall(block.text))
