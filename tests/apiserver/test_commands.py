"""The commands that ask a cluster, and their output as a person at a terminal reads it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from localcluster.binaries import binaries, find
from localcluster.versions import DEFAULT_KUBERNETES
from webhook.cli.main import app

from .asking import golden, run
from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    rows = [{"tier": "gpu-serving", "gpus": "4"}, {"gpus": "8.5"}]
    with installed.tenant_for("commands", namespace, quotas=rows, maxTier="gpu-serving") as name:
        yield name


def test_posture_of_a_cluster(installed: Installed, tenant: str) -> None:
    answer = run(installed, "posture", tenant)
    assert (answer.exit_code, answer.stderr, answer.stdout.rstrip("\n")) == (0, "", golden("posture"))


def test_usage_of_a_tenant(installed: Installed, namespace: str, tenant: str) -> None:
    assert installed.create(gpu_pod("web", 2, tier="gpu-serving"), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "gpu-serving 2/4, total 2/8.5", "the pod is counted")
    answer = run(installed, "usage", tenant)
    assert (answer.exit_code, answer.stderr, answer.stdout.rstrip("\n")) == (0, "", golden("usage"))


def test_a_tenant_that_is_not_there(installed: Installed, tenant: str) -> None:
    for command in ("posture", "usage"):
        answer = run(installed, command, "nobody")
        assert answer.exit_code == 2
        assert answer.stderr.startswith('there is no TenantQuota "nobody"; there are ')
        assert tenant in answer.stderr


def test_a_kubeconfig_or_a_context_that_is_not_there(installed: Installed, tmp_path: Path) -> None:
    missing = tmp_path / "kubeconfig"
    answer = CliRunner().invoke(app, ["usage", f"--kubeconfig={missing}"])
    assert answer.exit_code == 2
    assert answer.stderr == f"can't find the API server: there is no kubeconfig at {missing}\n"
    answer = run(installed, "usage", "--context=production")
    assert answer.exit_code == 2
    assert 'the kubeconfig has no context "production"; it has ' in answer.stderr


def test_kubectl_takes_it_as_a_plugin(installed: Installed, tenant: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = os.environ | {"PATH": path, "KUBECONFIG": str(installed.cluster.kubeconfig)}
    kubectl = find(binaries(DEFAULT_KUBERNETES)["kubectl"])
    asked = subprocess.run(
        [kubectl, "gpu-tiers", "posture", tenant], env=shell, capture_output=True, text=True, check=False
    )
    assert (asked.stderr, asked.stdout.rstrip("\n")) == ("", golden("posture"))
