"""`gpu-tiers open-gates` on a real API server: break-glass for pods that wait for quota, and an uninstall's end."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from installation.helm import ROOT
from localcluster import Cluster
from webhook.cli.main import app

from .installed import Installed
from .test_hold_guard import GATE, full, gated

pytestmark = pytest.mark.apiserver
__all__ = ["full"]

BINDING = "gpu-tiers-hold"
AUDIT = '{"spec":{"validationActions":["Audit"]}}'
OTHER = "example.com/other"


def asked(cluster: Cluster, namespace: str, *arguments: str, kubeconfig: Path | None = None) -> Result:
    named = f"--kubeconfig={kubeconfig or cluster.kubeconfig}", f"--namespace={namespace}"
    return CliRunner().invoke(app, ["open-gates", *named, *arguments])


def gates(cluster: Cluster, namespace: str) -> dict[str, list[str]]:
    found = cluster.api.get("pods", namespace)["items"]
    return {
        each["metadata"]["name"]: [gate["name"] for gate in each["spec"].get("schedulingGates", [])]
        for each in found
        if each["metadata"]["name"] != "first"
    }


def a_strangers_kubeconfig(cluster: Cluster, folder: Path) -> Path:
    """An administrator's who is not the webhook."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "-o=json").stdout)
    config["users"][0]["user"] |= {"as": "root", "as-groups": ["system:masters"]}
    (folder / "config").write_text(json.dumps(config))
    return folder / "config"


@pytest.mark.usefixtures("full")
def test_all_gates_are_opened_once_the_guard_is_gone(installed: Installed, namespace: str, tmp_path: Path) -> None:
    cluster, stranger = installed.cluster, a_strangers_kubeconfig(installed.cluster, tmp_path)
    for number in range(20):
        assert not installed.create(gated(f"held-{number}", GATE, OTHER), namespace).code
    free = gated("free", OTHER)
    del free["spec"]["containers"][0]["resources"]
    assert not installed.create(free, namespace).code

    counted = asked(cluster, namespace)
    assert counted.exit_code == 0
    assert counted.output.startswith(f"20 pods wait behind the gate {GATE}. To start them, add --yes; ")

    refused = asked(cluster, namespace, "--yes", kubeconfig=stranger)
    assert refused.exit_code == 2
    assert "Opened: 0 of 20 gates.\n" in refused.output
    assert "20 stay shut. The policy gpu-tiers-hold keeps the gates shut" in refused.output
    assert f"kubectl patch validatingadmissionpolicybinding {BINDING} --type=merge -p '{AUDIT}'" in refused.output
    assert set(map(tuple, gates(cluster, namespace).values())) == {(GATE, OTHER), (OTHER,)}

    binding = ("validatingadmissionpolicybinding", BINDING, "--type=merge")
    cluster.kubectl("patch", *binding, f"-p={AUDIT}")
    try:
        opened = asked(cluster, namespace, "--yes", "--wait-seconds=30", kubeconfig=stranger)
        assert opened.exit_code == 0, opened.output
        assert "Opened: 20 of 20 gates. Quotas may be overdrawn." in opened.output
        assert set(map(tuple, gates(cluster, namespace).values())) == {(OTHER,)}, "those of others stay"
        assert asked(cluster, namespace).output.startswith("0 pods wait")
        answer = CliRunner().invoke(app, ["check", f"--kubeconfig={cluster.kubeconfig}"])
        assert f"ValidatingAdmissionPolicy/{BINDING}: its binding says Audit, not Deny" in " ".join(
            answer.output.split()
        )
    finally:
        installed.upgrade()
    actions = cluster.kubectl("get", *binding[:2], "-o=jsonpath={.spec.validationActions}").stdout
    assert actions == '["Deny"]', "an upgrade keeps them shut again"


def test_the_page_says_these_commands() -> None:
    page = (ROOT / "docs" / "break-glass.md").read_text()
    patch = r"^kubectl patch validatingadmissionpolicybinding (\S+) --type=merge -p '(.*)'$"
    patched = re.findall(patch, page, re.MULTILINE)
    assert patched == [(BINDING, AUDIT), (BINDING, AUDIT.replace("Audit", "Deny"))]
    assert re.findall(r"^gpu-tiers open-gates (.*)$", page, re.MULTILINE) == ["--yes --wait-seconds=30"]
