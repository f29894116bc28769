"""A tenant floods the webhook, and another tenant's creates go on."""

import pytest

from .conftest import new_namespace
from .flood import watched
from .installed import Installed

pytestmark = pytest.mark.apiserver

SECONDS, CLIENTS = 10, 16


async def test_none_of_a_bystanders_creates_fails_beside_a_flood(installed: Installed, namespace: str) -> None:
    with new_namespace(installed.cluster) as quiet:
        installed.tenant("noisy", namespace, quotas=[{"gpus": 1}], maxTier="gpu-serving")
        installed.tenant("quiet", quiet, quotas=[{"gpus": 100}])
        seen = await watched(installed.cluster, installed.address.port, namespace, quiet, SECONDS, clients=CLIENTS)
        installed.api.delete("tenantquota/noisy", "tenantquota/quiet")

    assert seen.answers == {"201": SECONDS}
    assert seen.flood["403"] > SECONDS
