"""Reads the project's Markdown pages: headings, links and code blocks."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"(?:^<!-- not run: ([^\n]+) -->\n\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
_SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block, with the headings that it stands under."""

    language: str
    text: str
    headings: tuple[str, ...]
    not_run: str | None = None
    """Why no test runs its commands, as an HTML comment before it says: the reader sees none."""


@dataclass(frozen=True)
class Page:
    """A Markdown file."""

    path: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The page without its fenced blocks."""
        return _FENCE.sub("", self.text)

    def blocks(self, language: str | None = None) -> Iterator[Block]:
        for found in _FENCE.finditer(self.text):
            if language in (None, found[2]):
                yield Block(found[2], found[3], self._above(found.start()), found[1])

    def _above(self, position: int) -> tuple[str, ...]:
        above: dict[int, str] = {}
        for heading in _HEADING.finditer(_FENCE.sub(lambda found: " " * len(found[0]), self.text)[:position]):
            level = len(heading[1])
            above = {depth: title for depth, title in above.items() if depth < level} | {level: heading[2]}
        return tuple(above.values())

    def spans(self) -> list[str]:
        """Return the texts in backticks within the prose."""
        return [found.replace("\\|", "|") for found in _SPAN.findall(self.prose)]

    def code(self) -> str:
        """Return the blocks and spans of code."""
        return "\n".join([*(block.text for block in self.blocks()), *self.spans()])

    def links(self) -> list[str]:
        return [one or other for one, other in _LINK.findall(re.sub(r"`[^`\n]*`(?!\])", "", self.prose))]

    def anchors(self) -> set[str]:
        """Return the anchors that GitHub makes of headings; a repeated heading gets a number."""
        met: Counter[str] = Counter()
        anchors = set()
        for _, title in _HEADING.findall(self.prose):
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            anchors.add(f"{slug}-{met[slug]}" if met[slug] else slug)
            met[slug] += 1
        return anchors


def pages() -> list[Page]:
    """Every page of the project; not those laid out for the site."""
    found = ((path, path.relative_to(ROOT).parts) for path in ROOT.rglob("*.md"))
    return [Page(path) for path, parts in sorted(found) if parts[0] != "build" and not hidden(parts)]


def hidden(parts: Iterable[str]) -> bool:
    return any(part.startswith(".") for part in parts)


def page(name: str) -> Page:
    return Page(ROOT / name)
