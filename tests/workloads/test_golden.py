"""The answers to one manifest for each row of the table, each hook kind and each warning. `make golden` renews all."""

import difflib

import pytest

from tests.workloads.golden.files import COMMAND, WANTED, Golden, orphans, present
from webhook.cli.manifests.documents import documents
from webhook.policy.checkpoint.hook_plan import CHECKPOINT


@pytest.mark.parametrize("name", sorted({*WANTED, *present()}))
async def test_what_is_said_of_a_manifest_is_what_stands_below_it(name: str) -> None:
    golden = Golden(name)
    if not golden.path.exists():
        pytest.fail(f"{name}: no such file. Write a manifest there, as a user would, then: {COMMAND}", pytrace=False)
    if name in orphans():
        pytest.fail(f"{name}: no row of that name. Delete it, or mend its name.", pytrace=False)
    stands, now = golden.stands().splitlines(), (await golden.now()).splitlines()
    if stands != now:
        changes = "\n".join(difflib.unified_diff(stands, now, f"{name} as it stands", "as it is now", lineterm=""))
        pytest.fail(f"{changes}\n\nIf that is what you want, renew it: {COMMAND}", pytrace=False)


@pytest.mark.parametrize("name", WANTED)
def test_a_manifest_shows_what_its_file_is_named_after(name: str) -> None:
    golden = Golden(name)
    first = next(documents(str(golden.path)))
    match golden.path.parent.name:
        case "kinds":
            assert golden.path.stem == f"{first.group or 'core'}_{first.kind}"
        case "hooks":
            assert golden.path.stem == first.metadata["annotations"][CHECKPOINT]
        case "warnings":
            assert f"[{golden.path.stem}]" in golden.stands()
