"""The policy and the tenants that examples/ needs in a cluster, besides the kinds of the workload operators."""

from pathlib import Path

import yaml

from installation.helm import ROOT
from localcluster import Cluster
from localcluster.waiting import wait_until

EXAMPLES: Path = ROOT / "examples"
NOT_IN_THE_CHARTS_POLICY = {"apiVersion", "kind", "preset", "mode"}  # written by the chart, or values of their own
TENANTS_SECONDS = 240


def example_policy() -> dict[str, object]:
    """Return the examples' policy file as the chart's value `policy`, without the fields that the chart writes."""
    file = yaml.safe_load((EXAMPLES / "policies" / "four-tier.yaml").read_text())
    return {field: value for field, value in file.items() if field not in NOT_IN_THE_CHARTS_POLICY}


def add_tenants(cluster: Cluster) -> None:
    """Add the examples' tenants once the active policy has their tiers, and wait until all TenantQuotas are Ready.

    TimeoutError or KubectlError if either takes longer than TENANTS_SECONDS.
    """
    apply = ("apply", "-f", str(EXAMPLES / "tenants"))
    wait_until(
        lambda: cluster.kubectl(*apply, check=False).code == 0, TENANTS_SECONDS, "the tenants are applied", pause=2
    )
    cluster.kubectl("wait", "--for=condition=Ready", "tenantquota", "--all", f"--timeout={TENANTS_SECONDS}s")
