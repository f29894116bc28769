"""Changes that a watch missed while the API server was another one."""

import asyncio
from pathlib import Path

import pytest

from localcluster import ControlPlane
from webhook.kube.client import Client
from webhook.kube.errors import Gone
from webhook.server.tls import CertificateObjects

from .test_cluster import CLASSES, CRD, over_a_line, until, watching

pytestmark = pytest.mark.apiserver


async def test_after_a_restart_of_the_api_server_a_new_list_mends_what_was_missed(
    bare: ControlPlane, tmp_path: Path
) -> None:
    """A new API server knows no events from before its start: it answers 410, and only a list tells deletions."""
    bare.kubectl("apply", "-f", str(CRD))
    bare.kubectl("create", "priorityclass", "doomed", "--value=7")
    existing = "system-node-critical"
    version = bare.kubectl("get", "priorityclass", existing, "-o", "json").json()["metadata"]["resourceVersion"]
    async with over_a_line(bare, tmp_path) as (line, kubeconfig), watching(kubeconfig) as live:
        await asyncio.wait_for(live.wait_synced(), 120)
        (classes,) = (each for each in live._reflectors if each.source.path.endswith("priorityclasses"))
        before = classes._version
        await line.cut()
        await until(lambda: bool(live.problems()))
        bare.api.delete("priorityclass/doomed")
        await asyncio.to_thread(bare.restart_apiserver)
        async with await Client.connect(bare.kubeconfig) as direct:
            with pytest.raises(Gone):
                async with direct.watch(CLASSES, before) as events:
                    await anext(events)
            # A certificate's Secret is watched from its bare version, which may be as old as the installation.
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2):
                    await CertificateObjects(direct).changed(CLASSES, existing, since=version, within=60)
        assert "doomed" in live.classes()
        await line.mend()
        await until(lambda: "doomed" not in live.classes() and not live.problems())
