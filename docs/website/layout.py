"""Lays the project's pages out for a site, with the files that they link to.

On GitHub a page links to the file beside it: an example, a policy, the README above docs/. The site has no such files,
so each file that is linked to becomes a page with its text, and the links are turned there.
"""

import os
import shutil
from pathlib import Path

from website.links import with_links

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMES = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "examples/README.md": "examples.md",
}
"""Pages outside docs/ whose place on the site is another."""
LANGUAGES = {".yaml": "yaml", ".yml": "yaml", ".py": "python", ".json": "json", ".toml": "toml", ".txt": "text"}


class Layout:
    """Puts pages into a folder, and after them what they link to, until nothing is missing."""

    def __init__(self, folder: Path) -> None:
        """Empty the folder, or create it."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._folder = folder
        self._done: set[Path] = set()

    def put(self, file: Path) -> None:
        """Put a file, and what it links to, into the site, unless it is there already; code becomes a page."""
        if file in self._done:
            return
        self._done.add(file)
        target = self._folder / place(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            text = with_links(file.read_text(encoding="utf-8"), lambda link: self.turned(link, file))
            target.write_text(text, encoding="utf-8")
        elif file.suffix in LANGUAGES:
            target.write_text(_shown(file), encoding="utf-8")
        else:
            shutil.copyfile(file, target)

    def turned(self, link: str, page: Path) -> str:
        """Return the link for the site's page, and put its target there too; FileNotFoundError if there is none."""
        name, mark, anchor = link.partition("#")
        file = (page.parent / name).resolve()
        if file.is_dir():
            file /= "README.md"
        if not file.exists():
            raise FileNotFoundError(f"{page.relative_to(ROOT)}: {link} leads nowhere")
        self.put(file)
        return os.path.relpath(place(file), place(page).parent) + mark + anchor


def place(file: Path) -> Path:
    """Return the path that a file of the project has on the site."""
    within = file.relative_to(DOCS) if file.is_relative_to(DOCS) else file.relative_to(ROOT)
    name = NAMES.get(str(file.relative_to(ROOT)), str(within))
    return Path(f"{name}.md" if file.suffix in LANGUAGES else name)


def _shown(file: Path) -> str:
    """Return the text of a page that shows a file of code."""
    text = file.read_text(encoding="utf-8").rstrip("\n")
    return f"# {file.relative_to(ROOT)}\n\n````{LANGUAGES[file.suffix]}\n{text}\n````\n"


def lay_out(folder: Path) -> None:
    """Put all pages of docs/, the README, what they link to, and the site's own style and icon."""
    layout = Layout(folder)
    for name in ("site.css", "icon.svg"):
        shutil.copyfile(DOCS / "website" / name, folder / name)
    for page in (*sorted(DOCS.rglob("*.md")), ROOT / "README.md"):
        layout.put(page)
