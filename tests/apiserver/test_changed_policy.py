"""A policy that breaks stored TenantQuotas says so: to who asks before, and in their conditions after."""

from pathlib import Path

import pytest
import yaml

from .asking import run
from .installed import Installed

pytestmark = pytest.mark.apiserver

GONE = 'spec.quotas[0].resourceFlavor: unknown flavor "leaving"; known flavors: '


def test_a_flavor_that_a_stored_quota_names_is_dropped(installed: Installed, namespace: str, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text((installed.cluster.folder / "policy.yaml").read_text())
    flavors = yaml.safe_load(new.read_text()).get("resourceFlavors", [])
    leaving = {"name": "leaving", "nodeLabels": {"example.com/leaving": "true"}}
    try:
        with installed.policy_with(resourceFlavors=[*flavors, leaving]):
            installed.tenant("names-it", namespace, quotas=[{"resourceFlavor": "leaving", "gpus": 1}])
            asked = run(installed, "policy", "diff", str(new))
            assert asked.exit_code == 1
            assert f"TenantQuota names-it   Ready   Active → UnknownFlavor: {GONE}" in " ".join(asked.stdout.split(" "))
            assert "is no longer Ready" in asked.stdout

        def ready() -> dict[str, object]:
            return installed.condition("names-it", "Ready")

        installed.eventually(lambda: ready().get("reason") == "UnknownFlavor", "the condition of the broken quota")
        assert str(ready()["message"]).startswith(GONE)
    finally:
        installed.api.delete("tenantquota/names-it")
