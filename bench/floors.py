"""The references for gpu-tiers, each in one namespace: Kubernetes' in-tree means, and minimal webhooks.

All but ResourceQuota give a GPU pod the class gpu-batch, with its priority and its preemption policy.
"""

import base64
import json
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from certs.source import make_files
from installation.replicas import Replica
from localcluster import ControlPlane
from localcluster.binaries import Binary, find
from localcluster.ports import free_ports

GO_PAIR = Binary("webhook-pair", "1", project="webhook-pair", module="webhook-pair", package=".", minutes=0.1)
ASGI_PAIR = Path(__file__).with_name("asgi_pair.py")
CLASS = {"priorityClassName": "gpu-batch", "priority": 400, "preemptionPolicy": "PreemptLowerPriority"}
PATCH = json.dumps([{"op": "add", "path": f"/spec/{field}", "value": value} for field, value in CLASS.items()])
MUTATION = f"Object{{spec: Object.spec{{{', '.join(f'{field}: {json.dumps(CLASS[field])}' for field in CLASS)}}}}}"
CHECK = "object.spec.?priorityClassName.orValue('') == 'gpu-batch'"
CONDITION = """
(has(object.metadata.labels) && 'gpu-tiers.dev/tier' in object.metadata.labels) ||
(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])).exists(c,
has(c.resources) && has(c.resources.requests) && c.resources.requests.exists(k, k.startsWith('nvidia.com/'))) ||
(has(object.spec.resourceClaims) && size(object.spec.resourceClaims) > 0)
"""
"""As short as a person would write it."""
CONDITIONS = {"matchConditions": [{"name": "asks", "expression": CONDITION}]}
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
KINDS = {"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}
Tree = dict[str, Any]


def only_in(namespace: str) -> Tree:
    """Return a namespaceSelector for one namespace."""
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def admission(kind: str, name: str, **fields: object) -> Tree:
    """An object of the admission API."""
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **fields}


def policies(namespace: str) -> Iterator[Tree]:
    """A MutatingAdmissionPolicy and a ValidatingAdmissionPolicy for GPU pods, with their bindings."""
    common = {"matchConstraints": {"resourceRules": [RULE], "namespaceSelector": only_in(namespace)}, **CONDITIONS}
    patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": MUTATION}}
    mutating = {**common, "reinvocationPolicy": "IfNeeded", "mutations": [patch]}
    validating = {**common, "validations": [{"expression": CHECK}]}
    for kind, spec, binding in (
        ("MutatingAdmissionPolicy", mutating, {}),
        ("ValidatingAdmissionPolicy", validating, {"validationActions": ["Deny"]}),
    ):
        yield admission(kind, namespace, spec=spec)
        yield admission(f"{kind}Binding", namespace, spec={"policyName": namespace, **binding})


def pair(cluster: ControlPlane, namespace: str, *command: str) -> Iterator[Tree]:
    """Start `command`, a server of two minimal webhooks; yield their configurations for GPU pods of a namespace."""
    folder = cluster.folder / namespace
    authority = base64.b64encode(make_files(folder, ["127.0.0.1"]).ca).decode()
    (port,) = free_ports(1)
    cluster.processes.start(namespace, [*command, str(port), str(folder), PATCH])
    for path, kind in KINDS.items():
        entry = {
            "name": f"{path}.{namespace}.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{port}/{path}", "caBundle": authority},
            "rules": [RULE],
            "namespaceSelector": only_in(namespace),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 5,
            **CONDITIONS,
        }
        yield admission(kind, namespace, webhooks=[entry])


def install(cluster: ControlPlane, quota: str) -> None:
    """Install each reference for the namespace of its name; "quota" gets a ResourceQuota of `quota` GPUs."""
    hard = {"requests.nvidia.com/gpu": quota}
    metadata = {"name": "gpus", "namespace": "quota"}
    create(
        cluster,
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}},
        *policies("policies"),
        *pair(cluster, "go-pair", str(find(GO_PAIR))),
        *pair(cluster, "asgi-pair", sys.executable, str(ASGI_PAIR)),
    )
    status = json.dumps({"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}})
    # as the controller manager writes it first; the API server counts from then on
    cluster.kubectl("patch", "quota/gpus", "--namespace=quota", "--subresource=status", f"--patch={status}")


def create(cluster: ControlPlane, *trees: Tree) -> None:
    """Create objects."""
    cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": trees}))


def call_directly(cluster: ControlPlane, namespace: str, balancer: int, replica: Replica) -> None:
    """Let the API server call the replica in that namespace, as it calls the pairs, and not the port `balancer`."""
    for kind in KINDS.values():
        behind = cluster.kubectl("get", kind, "zz-gpu-tiers", "--output=json").json()
        direct = admission(kind, namespace, webhooks=deepcopy(behind["webhooks"]))
        for entry in direct["webhooks"]:
            client = entry["clientConfig"]
            client["url"] = client["url"].replace(f":{balancer}/", f":{replica.address.port}/")
            entry["namespaceSelector"] = only_in(namespace)
        for entry in behind["webhooks"]:
            elsewhere = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace]}
            entry["namespaceSelector"]["matchExpressions"].append(elsewhere)
        cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": [behind, direct]}))
