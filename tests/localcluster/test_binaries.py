"""The origin of the binaries."""

import re
from pathlib import Path

import pytest

from localcluster.binaries import MODULES, Binary, binaries, cache_folder, from_assets, link_flags
from localcluster.go_toolchain import go_version
from localcluster.operators.rows import OPERATORS
from localcluster.versions import ACTIONLINT, CONTAINERD, DRA_DRIVER, ETCD, HELM_4, KUBERNETES, KWOK, kubernetes

PINS = [
    *((f"kubernetes-{minor}", f"k8s.io/kubernetes {row.version}") for minor, row in KUBERNETES.items()),
    ("etcd", f"go.etcd.io/etcd/server/v3 {ETCD}"),
    ("kwok", f"sigs.k8s.io/kwok {KWOK}"),
    ("containerd", f"github.com/containerd/containerd/v2 {CONTAINERD}"),
    ("helm-4", f"helm.sh/helm/v4 {HELM_4}"),
    ("dra-example-driver", f"sigs.k8s.io/dra-example-driver {DRA_DRIVER}"),
    ("actionlint", f"github.com/rhysd/actionlint {ACTIONLINT}"),
    *((row.binary.module, f"{row.module} {row.binary.version}") for row in OPERATORS),
]


@pytest.mark.parametrize(("module", "pin"), PINS)
def test_the_table_and_the_go_modules_name_the_same_versions(module: str, pin: str) -> None:
    assert re.search(rf"^(require )?\s*{re.escape(pin)}$", (MODULES / module / "go.mod").read_text(), re.MULTILINE)


def test_an_unknown_version_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"Kubernetes 1\.12 is not in the table; there are 1\.37, 1\.36"):
        kubernetes("1.12")


def test_each_version_has_a_place_of_its_own_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPU_TIERS_CACHE", str(tmp_path))
    places = [binaries(minor)["kubectl"].cached for minor in ("1.37", "1.36")]
    assert places == [tmp_path / "bin" / f"kubernetes-{kubernetes(minor).version}" / "kubectl" for minor in KUBERNETES]


def test_the_cache_follows_the_xdg_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPU_TIERS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_folder() == Path("/elsewhere/gpu-tiers")


SAID = [
    ("kube-apiserver", "Kubernetes v1.37.2", True),
    ("kube-apiserver", "Kubernetes v1.37.20", False),
    ("kube-apiserver", "Kubernetes v1.36.3", False),
    ("etcd", "etcd Version: 3.6.12\nGit SHA: 9a5533382", True),
    ("kubectl", "Client Version: v1.37.2\nKustomize Version: v5.7.1", True),
]


@pytest.mark.parametrize(("name", "said", "taken"), SAID)
def test_envtests_binaries_are_taken_only_in_the_wanted_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, said: str, *, taken: bool
) -> None:
    program = tmp_path / name
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert from_assets(binaries("1.37")[name]) == (program if taken else None)


def test_kubernetes_learns_its_version_from_the_linker() -> None:
    flags = link_flags(binaries("1.37")["kube-apiserver"])
    assert "-X k8s.io/component-base/version.gitVersion=v1.37.2" in flags
    assert "-X k8s.io/component-base/version.gitMinor=37" in flags
    assert link_flags(Binary("etcd", ETCD, "etcd", "etcd", ".", 1)) == "-s -w"


def test_something_that_is_no_go_has_no_version() -> None:
    assert go_version("true") == (0, 0)
