"""`make golden`: writes below each golden manifest what is said of it now.

It makes no manifest and deletes none: a person chooses what a row is shown by. Ends with 1 where one has no file.
"""

import asyncio
import sys

from tests.workloads.golden.files import Golden, missing, orphans, present


def main() -> int:
    """Renew all files; the exit code."""
    changed = [name for name in present() if _renewed(Golden(name))]
    for name in changed:
        print(f"written: {name}")
    for name in missing():
        print(f"missing: {name}: write a manifest there, as a user would, then run this again")
    for name in orphans():
        print(f"no row: {name}: delete it, or mend its name")
    return 1 if missing() or orphans() else 0


def _renewed(golden: Golden) -> bool:
    now = asyncio.run(golden.now())
    if golden.stands() == now:
        return False
    golden.path.write_text(now, encoding="utf-8")
    return True


if __name__ == "__main__":
    sys.exit(main())
