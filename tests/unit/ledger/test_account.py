"""The account in a TenantQuota's status."""

import json

from msgspec.structs import replace

from webhook.ledger.account import FORMAT, Account, read_account, written_account

from .accounts import an_account, an_entry

ACCOUNT = an_account(an_entry("one", shared={"b": 1, "a": 2}), used=3, revision=7, term="replica-a/1").sealed("uid")


def read_back(**changes: object) -> Account:
    """Return the account as it comes back from an API server, which sorts the keys of every object."""
    return read_account({"ledger": json.loads(json.dumps(written_account(ACCOUNT), sort_keys=True)) | changes})


def test_what_was_written_is_read_and_is_sealed_for_its_object_alone():
    assert read_back() == ACCOUNT
    assert read_back().is_sealed("uid")
    assert not read_back().is_sealed("another uid")


def test_whatever_is_edited_breaks_the_seal():
    for changes in ({"entries": []}, {"namespaces": {}}, {"term": "mine"}, {"revision": 8}):
        assert not read_back(**changes).is_sealed("uid"), changes
    assert not replace(ACCOUNT, seal="").is_sealed("uid")


def test_no_account_and_an_unreadable_one_are_empty_and_unsealed():
    for status in ({}, {"ledger": None}, {"ledger": {"revision": "many"}}, {"ledger": {"entries": [3]}}):
        assert read_account(status) == Account()
    assert not Account().is_sealed("uid")


def test_an_account_of_a_later_version_is_distinguished_from_a_broken_one():
    assert read_back(format=FORMAT + 1, gangs=[{"uid": "g1"}]).newer
    assert not read_back().newer
