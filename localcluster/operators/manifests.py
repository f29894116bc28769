"""Renders an operator's own manifests for a cluster in which its pods can't run, and applies them."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from localcluster.binaries import MODULES, BinaryError, binaries, compiler, find
from localcluster.cluster import Cluster
from localcluster.crds import add_crds
from localcluster.operators.operator import Operator
from localcluster.processes import ProcessError
from localcluster.versions import DEFAULT_KUBERNETES

NOT_APPLIED = {"Deployment", "Job", "APIService"}
"""Kinds that would need pods, or an address of the cluster network."""

Tree = dict[str, Any]


def install(cluster: Cluster, operator: Operator, port: int) -> list[Tree]:
    """Apply an operator's manifests: namespaces, CRDs, then the rest, with its webhook on `port`. Return them."""
    objects = [redirected(each, port) for each in rendered(operator) if each["kind"] not in NOT_APPLIED]
    crds = [each for each in objects if each["kind"] == "CustomResourceDefinition"]
    apply(cluster, [each for each in objects if each["kind"] == "Namespace"])
    if crds:
        add_crds(cluster, *crds)
    apply(cluster, [each for each in objects if each not in crds] + webhook_services(objects))
    return objects


def uninstall_webhooks(cluster: Cluster, objects: list[Tree]) -> None:
    """Delete the webhook configurations among an operator's `objects`, because its process has ended."""
    for each in objects:
        if each["kind"].endswith("WebhookConfiguration"):
            cluster.kubectl("delete", each["kind"], each["metadata"]["name"], "--ignore-not-found")


def apply(cluster: Cluster, objects: list[Tree]) -> None:
    """Apply objects on the server, because an operator's CRD is too large for client-side apply's annotation."""
    if objects:
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        cluster.apply(json.dumps(items), "--server-side", "--force-conflicts")


def rendered(operator: Operator) -> list[Tree]:
    """Return the objects of an operator's manifests (by kustomize), of other modules, and of its installer.

    An operator without manifests has only those of its installer.
    """
    if not operator.manifests:
        return of_text(operator.installed)
    resources = "".join(f"- module/{each}\n" for each in operator.manifests)
    with tempfile.TemporaryDirectory(prefix="gpu-tiers-") as folder:
        # By a name of its own: kustomize takes a path with github.com in it for a repository.
        (Path(folder) / "module").symlink_to(module_folder(operator))
        (Path(folder) / "kustomization.yaml").write_text(f"resources:\n{resources}{operator.kustomization}")
        text = kustomized(Path(folder))
    others = [(module_folder(operator, module) / file).read_text() for module, file in operator.others]
    return [tree for each in (text, *others, operator.installed) for tree in of_text(each)]


def of_text(text: str) -> list[Tree]:
    """Return the objects in a text of YAML."""
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def kustomized(folder: Path) -> str:
    """Return what `kubectl kustomize` makes of a folder; ProcessError shows its message."""
    kubectl = find(binaries(os.environ.get("K8S") or DEFAULT_KUBERNETES)["kubectl"])
    command = [str(kubectl), "kustomize", ".", "--load-restrictor=LoadRestrictionsNone"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise ProcessError(f"kubectl kustomize: {run.stderr.strip()}")
    return run.stdout


def module_folder(operator: Operator, other: str = "") -> Path:
    """Return the folder in Go's module cache of the operator's module or `other`, fetched first; or BinaryError."""
    module = other or operator.module
    command = [*compiler(), "mod", "download", "-json", module]
    folder = MODULES / operator.binary.module
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise BinaryError(f"{module} could not be fetched: {run.stderr.strip() or run.stdout.strip()}")
    return Path(json.loads(run.stdout)["Dir"])


def redirected(tree: Tree, port: int) -> Tree:
    """Write the port into the Service of each webhook and conversion of an object, and return the object."""
    for client in client_configs(tree):
        client["service"]["port"] = port
    return tree


def client_configs(tree: Tree) -> Iterator[Tree]:
    """Yield the webhooks' addresses in a webhook configuration or a CRD."""
    conversion = tree.get("spec", {}).get("conversion", {}) if tree["kind"] == "CustomResourceDefinition" else {}
    for each in (*tree.get("webhooks", ()), conversion.get("webhook", {})):
        if "service" in each.get("clientConfig", {}):
            yield each["clientConfig"]


def webhook_services(objects: list[Tree]) -> list[Tree]:
    """Return the Services that webhooks name, as other names of localhost: the API server resolves it itself."""
    named = {(c["service"]["namespace"], c["service"]["name"]) for each in objects for c in client_configs(each)}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        for namespace, name in sorted(named)
    ]
