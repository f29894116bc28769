"""Decides where each binary comes from: $KUBEBUILDER_ASSETS, the cache, or a build."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localcluster.go_toolchain import go_command
from localcluster.versions import ACTIONLINT, CONTAINERD, COREDNS, DRA_DRIVER, ETCD, HELM_4, KWOK, PAUSE, kubernetes

MODULES = Path(__file__).parent / "go"
SHIM = "containerd-shim-runc-v2"
"""The program between containerd and the processes of a pod."""
VERSION_VARIABLES = "k8s.io/component-base/version"


class BinaryError(Exception):
    """A binary is missing and could not be built; the text says what to do."""


@dataclass(frozen=True)
class Binary:
    """One program: its name, its version, the Go module that pins it, and the package to build there."""

    name: str
    version: str
    project: str
    module: str
    package: str
    minutes: float
    version_arguments: tuple[str, ...] = ()

    @property
    def cached(self) -> Path:
        """The path in the cache."""
        return cache_folder() / "bin" / f"{self.project}-{self.version}" / self.name


def cache_folder() -> Path:
    """Return $GPU_TIERS_CACHE, else gpu-tiers below $XDG_CACHE_HOME, else ~/.cache/gpu-tiers."""
    own = os.environ.get("GPU_TIERS_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME")
    return Path(own) if own else (Path(shared) if shared else Path.home() / ".cache") / "gpu-tiers"


def binaries(minor: str) -> dict[str, Binary]:
    """Return all programs of a cluster of that Kubernetes minor version, by name."""
    rows = (
        Binary("etcd", ETCD, "etcd", "etcd", ".", 1, ("--version",)),
        of_kubernetes(minor, "kube-apiserver", 5, "--version"),
        of_kubernetes(minor, "kubectl", 0.5, "version", "--client"),
        of_kubernetes(minor, "kube-scheduler", 1, "--version"),
        of_kubernetes(minor, "kube-controller-manager", 1, "--version"),
        Binary("kwok", KWOK, "kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", 1.5),
    )
    return {row.name: row for row in rows}


def node_binaries(minor: str) -> dict[str, Binary]:
    """Return the programs of a real node except runc, by name; `pause` keeps a pod's namespaces."""
    rows = (
        of_kubernetes(minor, "kubelet", 0.5, "--version"),
        of_kubernetes(minor, "kube-proxy", 0.2, "--version"),
        Binary("coredns", COREDNS, "coredns", "coredns", ".", 1, ("-version",)),
        Binary("pause", PAUSE, "pause", "pause", ".", 0.1),
        *(of_containerd(name, minutes) for name, minutes in (("containerd", 1), (SHIM, 0.1), ("ctr", 0.1))),
    )
    return {row.name: row for row in rows}


def release_binaries() -> dict[str, Binary]:
    """Return the programs that only the tests of a release run, by name."""
    dra_driver = "sigs.k8s.io/dra-example-driver/cmd/dra-example-kubeletplugin"
    rows = (
        Binary("helm", HELM_4, "helm", "helm-4", "helm.sh/helm/v4/cmd/helm", 3),
        Binary("actionlint", ACTIONLINT, "actionlint", "actionlint", "github.com/rhysd/actionlint/cmd/actionlint", 0.2),
        Binary("dra-example-kubeletplugin", DRA_DRIVER, "dra-example-driver", "dra-example-driver", dra_driver, 2),
    )
    return {row.name: row for row in rows}


def of_kubernetes(minor: str, name: str, minutes: float, *version_arguments: str) -> Binary:
    """Return a program of the Kubernetes module of that minor version."""
    row = kubernetes(minor)
    package = f"k8s.io/kubernetes/cmd/{name}"
    return Binary(name, row.version, "kubernetes", f"kubernetes-{row.minor}", package, minutes, version_arguments)


def of_containerd(name: str, minutes: float) -> Binary:
    """Return a program of containerd's module."""
    package = f"github.com/containerd/containerd/v2/cmd/{name}"
    return Binary(name, CONTAINERD, "containerd", "containerd", package, minutes)


def find(binary: Binary, progress: str = "") -> Path:
    """Return the path of a binary, and build it if there is none; BinaryError or GoError if that fails."""
    return found(binary) or build(binary, progress)


def found(binary: Binary) -> Path | None:
    """Return the path of a binary that needs no build; None if it has to be built."""
    return from_assets(binary) or from_cache(binary)


def from_assets(binary: Binary) -> Path | None:
    """Return the path in $KUBEBUILDER_ASSETS (envtest's folder) if that binary says exactly this version, else None."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(assets or "") / binary.name
    if not assets or not binary.version_arguments or not os.access(path, os.X_OK):
        return None
    said = subprocess.run([path, *binary.version_arguments], capture_output=True, text=True, check=False).stdout
    return path if binary.version.removeprefix("v") in said.replace("v", " ").split() else None


def from_cache(binary: Binary) -> Path | None:
    """Return the path of a binary in the cache folder; None if it is not there."""
    return binary.cached if os.access(binary.cached, os.X_OK) else None


def build(binary: Binary, progress: str = "") -> Path:
    """Build a binary from its pinned module into the cache, unless another process just did; return its path.

    The binary appears there only when it is whole. `progress` begins the line that is printed about the build.
    """
    with only_one(f"{binary.project}-{binary.version}-{binary.name}"):
        if ready := from_cache(binary):
            return ready
        say(f"{progress}building {binary.name} {binary.version} (once; about {binary.minutes:g} min on 2 cores)")
        unfinished = binary.cached.with_suffix(f".{os.getpid()}.tmp")
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        try:
            run_go_build(binary, unfinished)
            unfinished.replace(binary.cached)
        finally:
            unfinished.unlink(missing_ok=True)
    return binary.cached


def run_go_build(binary: Binary, target: Path) -> None:
    """Run `go build` in the module's folder; BinaryError carries the compiler's last lines."""
    command = [*compiler(), "build", "-trimpath", "-ldflags", link_flags(binary)]
    run = subprocess.run(
        [*command, "-o", str(target), binary.package],
        cwd=MODULES / binary.module,
        env={**os.environ, "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        tail = "\n".join(run.stderr.splitlines()[-15:])
        raise BinaryError(f"go build of {binary.package} {binary.version} failed:\n{tail}")


def link_flags(binary: Binary) -> str:
    """Return the linker's flags; Kubernetes learns its version only from them."""
    if binary.project != "kubernetes":
        return "-s -w"
    major, minor, _ = binary.version.removeprefix("v").split(".")
    variables = {"gitVersion": binary.version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X {VERSION_VARIABLES}.{name}={value}" for name, value in variables.items())])


def compiler() -> list[str]:
    """Return the command line that starts Go, which one process installs if it is missing; GoError if it can't."""
    with only_one("go"):
        return go_command(cache_folder())


@contextmanager
def only_one(what: str) -> Iterator[None]:
    """Let one process at a time run the block for `what`; another one waits, and prints that."""
    lock = cache_folder() / "locks" / what
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process sees to {what}; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    """Write one line of progress to stderr, so that stdout stays for answers."""
    sys.stderr.write(f"localcluster: {text}\n")
    sys.stderr.flush()
