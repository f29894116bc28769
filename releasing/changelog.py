"""Cuts the changelog: what was unreleased becomes the version."""

from datetime import date

from releasing.version import ReleaseError

UNRELEASED = "## Unreleased\n"


def cut(text: str, version: str, day: date) -> str:
    """The changelog with a heading for this version. Raises ReleaseError where there is nothing to release."""
    before, found, after = text.partition(UNRELEASED)
    entries, _, _ = after.partition("\n## ")
    if not found or not entries.strip():
        raise ReleaseError("CHANGELOG.md has nothing below `## Unreleased`: what would the release be of?")
    return f"{before}{UNRELEASED}\n## {version} ({day.isoformat()})\n{after}"
