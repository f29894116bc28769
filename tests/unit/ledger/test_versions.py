"""The version of a TenantQuota that a process goes by, however watch and answers overtake each other."""

from webhook.ledger.account import Account, written_account
from webhook.ledger.versions import Versions
from webhook.policy.quota.tenant_quotas import TenantQuota, tenant_quota_of

UID = "uid-of-alpha"


def stored(version: int, uid: str = UID) -> TenantQuota:
    """Return the object as one of us wrote it, after the version before."""
    sealed = Account(revision=version - 1).sealed(uid)
    metadata = {"name": "alpha", "uid": uid, "resourceVersion": str(version)}
    spec = {"namespaceSelector": {}, "quotas": [{"gpus": 4}]}
    return tenant_quota_of({"metadata": metadata, "spec": spec, "status": {"ledger": written_account(sealed)}})


def test_an_answer_that_the_watch_has_overtaken_is_not_an_account_that_somebody_put_back() -> None:
    versions = Versions()
    versions.changed("alpha", stored(8))
    found = versions.learned(stored(7), as_of=100)
    assert found.sealed
    assert found.quota.resource_version == "8"
    assert found.as_of == 100, "it was the newest after the read began: the read saw an older one"


def test_an_account_that_somebody_put_back_is_not_sealed() -> None:
    versions = Versions()
    versions.changed("alpha", stored(8))
    back = stored(9)
    back.status["ledger"] = stored(7).status["ledger"]
    assert not versions.learned(back, as_of=100).sealed


def test_a_tenantquota_that_was_made_again_is_not_the_one_that_is_known() -> None:
    versions = Versions()
    versions.changed("alpha", stored(8))
    assert versions.learned(stored(9, uid="made again"), as_of=100).quota.uid == "made again"


def test_a_read_of_the_version_that_is_known_makes_it_as_fresh_as_the_read() -> None:
    versions = Versions()
    versions.changed("alpha", stored(8))
    assert versions.learned(stored(8), as_of=100).as_of == 100
