"""GPUs by DRA on fake nodes: kube-scheduler evicts nobody for them, and people are told so, node by node."""

import json
import re
from collections.abc import Iterator

import pytest

from localcluster.fake_nodes import node as fake_node
from tests.builders.claims import a_claim

from .asking import run, running, why
from .dra import Dra
from .installed import Installed

pytestmark = pytest.mark.apiserver

EVICTS_NOBODY = "kube-scheduler evicts nobody for devices of DRA"


@pytest.fixture
def dra(installed: Installed, namespace: str) -> Iterator[Dra]:
    found = Dra(installed, namespace)
    found.apply(*found.objects())
    yield found
    found.remove()
    installed.api.delete(f"node/{found.node}", f"node/{found.plugin_node}", f"deviceclass/{found.name}")
    installed.api.delete(f"resourceslice/{found.node}")


def test_a_pod_that_waits_for_devices_reads_who_holds_them(dra: Dra, namespace: str) -> None:
    dra.start(dra.pod("low", "gpu-batch"))
    claim = a_claim("shared", deviceClassName=dra.name).unplaced()
    assert dra.installed.create(claim, namespace).code == 0
    named = dra.pod("named", "gpu-training", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
    named["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    dra.start(named)
    created = dra.installed.create(dra.pod("high", "gpu-training"), namespace)
    assert created.code == 0
    dra.installed.eventually(lambda: "The scheduler says" in why(dra.installed, namespace, "high"), "its wait")
    answer = why(dra.installed, namespace, "high")
    assert f"It waits for 1 device of {dra.name} on one node: {dra.node} has 0 free." in answer
    assert EVICTS_NOBODY in answer
    assert f"does not tolerate the taint example.com/repair:NoSchedule of device c on {dra.node}." in answer
    explained = run(dra.installed, "explain", "high", f"--namespace={namespace}").stdout
    assert f"[evicts-nobody] kube-scheduler evicts nobody for {dra.resource}"[:60] in explained
    rows = [line.split("  ") for line in answer.splitlines() if f"{namespace}/" in line]
    whys = {next(cell for cell in row if cell.startswith(namespace)): row[-1].strip() for row in rows}
    assert whys == {
        f"{namespace}/low": "no: lower priority, but nobody is evicted for devices of DRA",
        f"{namespace}/named": f"no: ResourceClaim {namespace}/shared, named by the pod: free when no pod uses it",
    }
    assert running(dra.installed, namespace, "low"), "nobody was evicted"


def test_a_mixed_cluster_is_reported_node_by_node(dra: Dra, namespace: str) -> None:
    # 1. All nodes that have the resource have it by DRA: whoever applies is warned.
    dra.installed.eventually(dra.warns, "the DeviceClass is known")

    # 2. A device plugin has it on another node: there the scheduler evicts, and the warning goes.
    plugin = fake_node(dra.plugin_node, 0, {"team": namespace})
    room = plugin["status"]["capacity"] | {dra.resource: "1"}  # type: ignore[index]
    dra.apply({**plugin, "status": {"capacity": room, "allocatable": room}})
    dra.installed.eventually(lambda: not dra.warns(), "the device plugin is known")

    # 3. posture and lint say which nodes are which.
    posture = json.loads(run(dra.installed, "posture", "--output=json").stdout)
    (of_class,) = [each for each in posture["dra"] if each["deviceClass"] == dra.name]
    assert of_class == {
        "deviceClass": dra.name,
        "extendedResource": dra.resource,
        "evictsNobodyOn": [dra.node],
        "evictsOn": [dra.plugin_node],
    }
    linted = json.loads(run(dra.installed, "lint", "--output=json").stdout)["findings"]
    of_tiers = (each for each in linted if each["id"] == "tiers-without-eviction")
    (found,) = (each for each in of_tiers if each["where"] == f"DeviceClass/{dra.name}")
    assert "`preemption.dra: On`" in found["fix"]
    what = found["what"]
    assert what.startswith(f"no tier evicts anybody for devices of {dra.name} and {dra.resource} on node {dra.node}")
    assert f"on node {dra.plugin_node} a device plugin has {dra.resource}" in what

    # 4. A pod of the highest tier evicts where the device plugin is, though lower pods hold devices of DRA too.
    for name in ("low-1", "low-2", "low-3"):
        dra.start(dra.pod(name, "gpu-batch"))
    on_plugin = [name for name in ("low-1", "low-2", "low-3") if node_of(dra, name) == dra.plugin_node]
    dra.start(dra.pod("high", "gpu-training"))
    assert node_of(dra, "high") == dra.plugin_node

    # 5. The next one waits, and is told of both kinds of nodes.
    assert dra.installed.create(dra.pod("next", "gpu-training"), namespace).code == 0
    dra.installed.eventually(lambda: "The scheduler says" in why(dra.installed, namespace, "next"), "its wait")
    answer = why(dra.installed, namespace, "next")
    assert "No pod there has a lower priority than gpu-training's" in answer
    assert EVICTS_NOBODY in answer
    assert "lower priority, but nobody is evicted for devices of DRA" in answer
    assert len(on_plugin) == 1


def test_the_work_of_a_training_with_a_claim_is_at_risk(dra: Dra, namespace: str) -> None:
    """Who only asks reads no claims: what a pod was admitted with stands in its annotation."""
    claim = a_claim("own", deviceClassName=dra.name).unplaced()
    assert dra.installed.create(claim, namespace).code == 0
    training = dra.pod("train", "gpu-training", resourceClaims=[{"name": "gpu", "resourceClaimName": "own"}])
    training["spec"]["containers"][0] |= {"resources": {"claims": [{"name": "gpu"}]}, "command": ["torchrun", "t.py"]}
    with dra.installed.tenant_for(f"dra-{namespace}", namespace, quotas=[{"gpus": 8}]) as tenant:
        dra.start(training)
        at_risk = dra.installed.metric
        dra.installed.eventually(lambda: at_risk("gpu_tiers_at_risk_gpu_seconds", tenant=tenant) >= 1, "some work")
        assert re.search(rf"{tenant} +gpu-training +at most ", run(dra.installed, "usage", tenant, "--at-risk").stdout)


def node_of(dra: Dra, pod: str) -> str:
    return str(dra.installed.get(f"pod/{pod}", dra.namespace)["spec"].get("nodeName"))
