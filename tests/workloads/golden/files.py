"""The golden files: which there have to be, what is in one, and how it is renewed."""

from dataclasses import dataclass
from pathlib import Path

from tests.workloads.golden.outcome import lines_of
from webhook.cli.cluster.installed import policy_in
from webhook.cli.manifests.documents import documents
from webhook.cli.manifests.inputs import cluster_of
from webhook.cli.manifests.judge import judge_at
from webhook.policy.checkpoint.hook_kinds import ROWS
from webhook.policy.workloads.kind_table import BUILT_IN
from webhook.sentences.sentence import WARNINGS

FOLDER = Path(__file__).parent
COMMAND = "make golden"
MARK = f"# gpu-tiers review says (`{COMMAND}` writes what follows):\n"

WANTED = (
    *(f"kinds/{row.group or 'core'}_{row.kind}.yaml" for row in BUILT_IN.rows),
    *(f"hooks/{kind}.yaml" for kind in ROWS),
    *(f"warnings/{warning}.yaml" for warning in WARNINGS),
)
"""One for each row of three tables. Those below refusals/ are any."""


@dataclass(frozen=True)
class Golden:
    """A file: a manifest as a person writes it, and below a mark what is said of it, as comments."""

    name: str

    @property
    def path(self) -> Path:
        return FOLDER / self.name

    def stands(self) -> str:
        """The file as it is."""
        return self.path.read_text(encoding="utf-8")

    async def now(self) -> str:
        """The file as it should be: the same manifest, reviewed as `gpu-tiers review -f` does."""
        manifest = self.stands().partition(MARK)[0].rstrip("\n")
        asked = list(documents(str(self.path)))
        judge = judge_at(cluster_of(policy_in(None), asked), policy_in(None))
        said = [f"#   {line}\n" for document in asked for line in lines_of(await judge.finding(document))]
        return "".join((manifest, "\n\n", MARK, *said))


def present() -> tuple[str, ...]:
    """The files that there are."""
    return tuple(sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*.yaml")))


def missing() -> tuple[str, ...]:
    """Rows without a file."""
    there = set(present())
    return tuple(name for name in WANTED if name not in there)


def orphans() -> tuple[str, ...]:
    """Files without a row."""
    return tuple(name for name in present() if name not in WANTED and not name.startswith("refusals/"))
