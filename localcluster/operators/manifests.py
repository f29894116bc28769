"""Renders an operator's own manifests for a cluster in which its pods can't run, and applies them."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from localcluster.binaries import MODULES, BinaryError, binaries, cache_folder, find
from localcluster.cluster import Cluster
from localcluster.go_toolchain import go_command
from localcluster.operators.operator import Operator
from localcluster.versions import DEFAULT_KUBERNETES
from localcluster.waiting import wait_until

NOT_APPLIED = {"Deployment", "APIService"}
"""What would need pods, or an address of the cluster network."""
ESTABLISHED_SECONDS = 60

Tree = dict[str, Any]


def install(cluster: Cluster, operator: Operator, port: int) -> list[Tree]:
    """Apply an operator's manifests, the CRDs first; its webhook listens on that port. Return what was applied."""
    objects = [reached_beside(each, port) for each in rendered(operator) if each["kind"] not in NOT_APPLIED]
    crds = [each for each in objects if each["kind"] == "CustomResourceDefinition"]
    apply(cluster, [each for each in objects if each["kind"] == "Namespace"])
    apply(cluster, crds)
    wait_until(lambda: are_established(cluster, crds), ESTABLISHED_SECONDS, f"the CRDs of {operator.name}", pause=0.5)
    apply(cluster, [each for each in objects if each not in crds] + webhook_services(objects))
    return objects


def are_established(cluster: Cluster, crds: list[Tree]) -> bool:
    """Whether all are served. `kubectl wait` itself fails on a CRD that has no conditions yet."""
    names = [f"crd/{each['metadata']['name']}" for each in crds]
    wait = ("wait", "--for=condition=Established", *names, "--timeout=5s")
    return not names or not cluster.kubectl(*wait, check=False).code


def uninstall_webhooks(cluster: Cluster, objects: list[Tree]) -> None:
    """Delete its webhook configurations: nobody asks a process that has gone."""
    for each in objects:
        if each["kind"].endswith("WebhookConfiguration"):
            cluster.kubectl("delete", each["kind"], each["metadata"]["name"], "--ignore-not-found")


def apply(cluster: Cluster, objects: list[Tree]) -> None:
    """Apply them by the server: a CRD of an operator is too large for the annotation of the other way."""
    if objects:
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        cluster.apply(json.dumps(items), "--server-side", "--force-conflicts")


def rendered(operator: Operator) -> Iterator[Tree]:
    """Yield the objects of its manifests: of a kustomization, or of a folder of plain files, or of a file."""
    for path in (module_folder(operator) / each for each in operator.manifests):
        yield from (each for each in yaml.load_all(text_of(path), yaml.CSafeLoader) if each)


def text_of(path: Path) -> str:
    """Return the documents at a path."""
    if path.is_file():
        return path.read_text()
    if not (path / "kustomization.yaml").exists():
        return "\n---\n".join(file.read_text() for file in sorted(path.glob("*.yaml")))
    kubectl = find(binaries(os.environ.get("K8S") or DEFAULT_KUBERNETES)["kubectl"])
    # From inside: a path with github.com in it would be taken for a repository.
    return subprocess.run([kubectl, "kustomize", "."], cwd=path, capture_output=True, text=True, check=True).stdout


def module_folder(operator: Operator) -> Path:
    """Return where the operator's module lies in Go's module cache, fetched if need be; BinaryError if it can't be."""
    command = [*go_command(cache_folder()), "mod", "download", "-json", operator.module]
    folder = MODULES / operator.binary.module
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise BinaryError(f"{operator.module} could not be fetched: {run.stderr.strip() or run.stdout.strip()}")
    return Path(json.loads(run.stdout)["Dir"])


def reached_beside(tree: Tree, port: int) -> Tree:
    """Have the API server ask that port, whichever service a webhook or a conversion names."""
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
