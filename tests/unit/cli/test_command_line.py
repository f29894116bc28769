"""The common behaviour of all commands: help, wrong options, and their end in a closed pipe."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from tests.unit.cli.reviewing import EXAMPLES
from webhook.cli.main import app

WIDTH = 80
GPU_TIERS = (sys.executable, "-c", "from webhook.cli.main import app; app()")


def commands(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    yield words
    for word in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, word), *words, word)


def said(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH)})
    return result.exit_code, result.output


WORDS_ALONE = {"version"}
NEIGHBOURS = {
    "explain": ("why-pending", "usage"),
    "why-pending": ("explain", "usage"),
    "usage": ("why-pending", "posture", "report"),
    "posture": ("usage", "report"),
    "report": ("posture", "usage"),
    "check": ("lint", "audit"),
    "lint": ("check", "audit"),
    "audit": ("check", "lint", "review"),
    "review": ("test", "policy diff"),
    "test": ("review", "policy diff"),
    "policy diff": ("test", "review"),
}
LEAVES = [
    words
    for words in commands(typer.main.get_command(app))
    if words and words[-1] not in WORDS_ALONE and words not in {("policy",), ("certs",)}
]


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_the_help_of_a_command_has_an_example_and_names_its_neighbours(words: tuple[str, ...]) -> None:
    found: Any = typer.main.get_command(app)
    for word in words:
        found = found.get_command(None, word)
    (example,) = re.findall(r"^ *Example: `gpu-tiers ([^`]+)`$", found.help, re.MULTILINE)
    assert example.startswith(" ".join(words))
    options = {option for each in found.params for option in each.opts}
    assert [each for each in example.split() if each.startswith("-") and each not in options] == []
    assert [each for each in NEIGHBOURS.get(" ".join(words), ()) if f"`{each}" not in found.help] == []


@pytest.mark.parametrize("words", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_the_help_of_each_command_fills_its_lines(words: tuple[str, ...]) -> None:
    code, text = said(*words, "--help")
    prose = [line.strip() for line in text.partition("╭")[0].splitlines()]
    ragged = [line for line, below in pairwise(prose) if below and line and fits(below.split()[0], line)]
    assert (code, ragged) == (0, [])


NOBODY_ANSWERS = """\
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: here, context: {cluster: here}}]
"""
TELLS_ITS_LIBRARIES = """
import atexit, sys
atexit.register(lambda: print(*{each.partition(".")[0] for each in sys.modules}, file=sys.stderr))
from webhook.cli.__main__ import program
program()
"""
SLOW = {
    *("aiohttp", "attr", "kubernetes", "requests", "urllib3", "oauthlib", "websocket"),
    *("uvicorn", "starlette", "prometheus_client", "jinja2", "cryptography"),
    *("jsonpatch", "pydantic", "pygments", "rich"),
}
"""Libraries that a command waits for, if it imports them."""
CLIENT = {"aiohttp", "kubernetes", "attr", "pydantic"}
"""The API server's client needs the first three; with the last, typer reads options, and we the policy."""
CEL = {"rich", "pygments"}
"""The library that runs the rules of TenantQuotas imports its own command line."""
WAITS_FOR = {
    ("--version",): set[str](),
    ("report",): {"pydantic"},
    ("usage",): CLIENT,
    ("posture",): CLIENT,
    ("open-gates",): CLIENT,
    ("lint",): CLIENT,
    ("check",): CLIENT,
    ("audit",): {*CLIENT, "jsonpatch"},
    ("explain", "job/ranker"): {*CLIENT, "jsonpatch"},
    ("why-pending", "ranker"): {*CLIENT, "jsonpatch"},
    ("policy", "diff", "four-tier"): {*CLIENT, "jsonpatch"},
    ("policy", "check", "four-tier"): {"pydantic", "jsonpatch"},
    ("lint", "--policy=four-tier"): {"pydantic"},
    ("posture", "--policy=four-tier"): {"pydantic"},
    ("review", str(EXAMPLES / "job-training.yaml")): {"pydantic", "jsonpatch", "rich"},
    ("test", str(EXAMPLES / "tests")): {"pydantic", "jsonpatch", *CEL},
    ("certs", "show", "nowhere"): {"pydantic", "cryptography"},
}
"""The slow ones that a command imports until it has its first question answered, or refused."""


@pytest.mark.parametrize("words", WAITS_FOR, ids=" ".join)
def test_a_command_waits_for_no_library_that_it_does_not_need(words: tuple[str, ...], tmp_path: Path) -> None:
    """Each runs to its end; no API server answers."""
    (tmp_path / "config").write_text(NOBODY_ANSWERS)
    run = subprocess.run(
        [sys.executable, "-c", TELLS_ITS_LIBRARIES, *words],
        env={"KUBECONFIG": str(tmp_path / "config")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (0, 2)
    assert SLOW & {*run.stderr.splitlines()[-1].split()} <= WAITS_FOR[words]


def test_no_expression_of_commands_is_made_before_a_command_is_read() -> None:
    made = "from webhook.policy.classification.commands import pattern_of as made"
    program = f"import webhook.cli.explain; {made}; print(made.cache_info().currsize)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "0\n"


def test_what_is_like_a_command_is_named_with_it() -> None:
    assert "Did you mean 'explain'" in said("exlain")[1]


def test_what_goes_wrong_on_the_way_to_an_answer_is_no_part_of_it(tmp_path: Path) -> None:
    """A Job whose count is none owns the pod: that is logged, and the answer is JSON all the same."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "sweep", "uid": "", "controller": True}
    container = {"name": "main", "image": "registry.example/work:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sweep-0", "ownerReferences": [owner]}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sweep"}}
    objects = [pod | template, job | {"spec": {"parallelism": "many", "template": template}}]
    (tmp_path / "all.yaml").write_text("---\n".join(map(yaml.safe_dump, objects)))
    program = str(Path(sys.executable).parent / "gpu-tiers")
    review = subprocess.run([program, "review", str(tmp_path), "-o=json"], capture_output=True, text=True, check=False)
    assert [json.loads(line)["name"] for line in review.stdout.splitlines()] == ["sweep-0", "sweep"]


def fits(word: str, line: str) -> bool:
    return len(f" {line} {word} ") <= WIDTH


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("serve", "--port=http"), '"http": should be a whole number'),
        (("serve", "--port=99999"), '"99999": should be less than or equal to 65535'),
        (("serve", "--prometheus-url=prometheus:9090"), "must begin with http:// or https://"),
        (
            ("serve", "--prometheus-url=http://prometheus:9090", "--prometheus-token-file=token"),
            "must begin with https://, because a token goes with each question",
        ),
        (("serve", "--prometheus-url=http://prometheus", "--prometheus-label=eu-1"), "eu-1 is not LABEL=VALUE"),
        (("lint", "--fail-on=worst"), "'worst' is not one of 'error', 'warning', 'info'"),
        (("posture", "alpha", "--policy=four-tier"), "--policy: a policy file has no tenants; leave out alpha, or"),
        (
            ("posture", "--policy=four-tier", "--context=prod"),
            "--context: no cluster is asked about a policy file; leave",
        ),
        (("lint", "--policy=four-tier", "--context=prod"), "--context: no cluster is asked about a policy file; leave"),
        (
            ("audit", "-f", "-", "--context=prod"),
            "--context: no cluster is asked about manifests; leave out one of them",
        ),
        (("usage", "--since=1d", "--context=prod"), "--context: no cluster is asked with --since, which Prometheus"),
        (("policy", "diff", "four-tier", "-f", "-"), "so name the old policy too: policy diff OLD NEW"),
        (("explain", "job", "a", "b"), '"job a b" does not name one object; write NAME of a pod, or KIND/NAME'),
        (("why-pending", "job/"), '"job/" does not name one object; write NAME of a pod, or KIND/NAME'),
        (
            ("certs", "show", "nowhere"),
            "nowhere is no folder; to make a certificate there: gpu-tiers certs make nowhere",
        ),
        (
            ("demo", "--examples=nowhere"),
            "nowhere: there is no such folder; run it in a checkout of gpu-tiers, or name",
        ),
        (("review", "-f", "nowhere.yaml"), "nowhere.yaml: there is no such file or folder"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_a_mistake_is_reported_with_what_to_write(arguments: tuple[str, ...], sentence: str) -> None:
    code, text = said(*arguments)
    assert code == 2
    assert sentence in " ".join(text.replace("│", " ").split())


def test_a_command_ends_without_a_word_where_nobody_reads_on() -> None:
    """`gpu-tiers review examples | head -1` ends as kubectl does."""
    command = [*GPU_TIERS, "review", str(EXAMPLES / "warnings")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout
        assert run.stderr
        first = run.stdout.readline()
        run.stdout.close()
        assert run.stderr.read() == ""
    assert (run.returncode, Path(first.partition("(")[2]).parts[-1:]) == (141, ("checkpoint-on-emptydir.yaml:2)\n",))


@pytest.mark.parametrize(
    "command", [("version",), ("policy", "check", "four-tier"), ("review", str(EXAMPLES / "warnings"))]
)
def test_a_full_disk_is_reported_in_a_sentence(command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        run = subprocess.run([*GPU_TIERS, *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (2, "can't write: No space left on device\n")
