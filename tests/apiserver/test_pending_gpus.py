"""A quota that is full while nothing runs: where people look, GPUs of pods without a node are told from the others."""

import pytest

from .asking import run
from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver


def test_gpus_of_pods_without_a_node_are_shown_apart(installed: Installed, namespace: str) -> None:
    installed.cluster.add_node(f"of-{namespace}", gpus=8)
    quotas = [{"gpus": 16}, {"tier": "gpu-batch", "gpus": 6}]
    with installed.tenant_for(f"idle-{namespace}", namespace, quotas=quotas) as tenant:

        def pending() -> tuple[str, dict[str, str]]:
            found = installed.get(f"tenantquota/{tenant}", "")["status"].get("pending", {})
            return found.get("gpus", ""), {each["row"]: each["gpus"] for each in found.get("rows", [])}

        def create(name: str, gpus: int, **where: str) -> None:
            assert not installed.create(gpu_pod(name, gpus, tier="gpu-batch", **where), namespace).code

        # 1. One pod runs, and one finds no node.
        create("runs", 2, node=f"of-{namespace}")
        create("waits", 4)
        installed.eventually(lambda: pending() == ("4", {"gpu-batch": "4", "total": "4"}), "the pod without a node")
        assert installed.usage(tenant) == "total 6/16, gpu-batch 6/6"

        # 2. kubectl, the command and the metric say so.
        wide = installed.cluster.kubectl("get", "tenantquota", tenant, "--output=wide").stdout
        heading, row = wide.splitlines()
        assert row[heading.index("PENDING") :].split()[0] == "4"
        [batch] = [
            line.split() for line in run(installed, "usage", tenant).stdout.splitlines() if " gpu-batch " in line
        ]
        assert batch[-6:] == ["6", "4", "0", "0", "6", "0"], "used, pending, reserved, for the queue, hard, free"
        assert installed.metric("gpu_tiers_pending_gpus", tenant=tenant, tier="gpu-batch") == 4
        assert installed.metric("gpu_tiers_ledger_gpus", tenant=tenant, tier="gpu-batch") == 6

        # 3. The scheduler's own words stand in what lint would say after some hours.
        condition = installed.get("pod/waits", namespace)["status"]["conditions"][0]
        assert "nodes are available" in condition["message"]

        # 4. It has gone, and so has the number.
        installed.api.delete("pod/waits", namespace=namespace, seconds=0)
        installed.eventually(lambda: pending() == ("0", {}), "no such pod any more")
        assert installed.metric("gpu_tiers_pending_gpus", tenant=tenant) == 0
