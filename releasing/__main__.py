"""The commands of `python -m releasing`: a version for a release, or `archives`."""

import sys
from datetime import UTC, datetime
from pathlib import Path

from releasing.archives import archives
from releasing.changelog import cut
from releasing.version import ReleaseError, agreed, checked, state

ROOT = Path(__file__).resolve().parents[1]


def release(version: str) -> None:
    """Set the version everywhere and cut the changelog; nothing is changed if anything is wrong."""
    checked(version, agreed(ROOT))
    changelog = ROOT / "CHANGELOG.md"
    text = cut(changelog.read_text(encoding="utf-8"), version, datetime.now(UTC).date())
    state(ROOT, version)
    changelog.write_text(text, encoding="utf-8")
    print(f"{version}: look at `git diff`, then commit it and tag it v{version}")


def main() -> int:
    """Do what is asked; 2 where that is no command, 1 where it can't be done."""
    match sys.argv[1:]:
        case ["archives"]:
            archives(ROOT, ROOT / "dist")
        case [version]:
            try:
                release(version)
            except ReleaseError as error:
                print(f"releasing: {error}", file=sys.stderr)
                return 1
        case _:
            print("releasing: write a version such as 0.2.0: make release VERSION=0.2.0", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
