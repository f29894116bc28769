"""What the webhook configurations cost a pod that is not ours: dry-run creates through a real API server.

`python bench/match_conditions.py [CHART …]`. Each case is installed for a namespace of its own, and the creates take
turns, so that a machine that slows down slows all. A dead webhook stands behind our configurations: such a pod never
reaches it. The baselines are a namespace for which nothing is installed, and in-tree admission policies whose condition
a person would write. Further charts, such as one of another commit, are measured beside this one.
"""

import http.client
import json
import ssl
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from localcluster import ControlPlane

CREATES, WARM_UP = 2000, 100
CHART = Path(__file__).parents[1] / "charts" / "gpu-tiers"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
CONDITION = """
(has(object.metadata.labels) && 'gpu-tiers.dev/tier' in object.metadata.labels) ||
(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])).exists(c,
has(c.resources) && has(c.resources.requests) && c.resources.requests.exists(k, k.startsWith('nvidia.com/'))) ||
(has(object.spec.resourceClaims) && size(object.spec.resourceClaims) > 0)
"""
LABELLED = 'Object{metadata: Object.metadata{labels: {"gpu-tiers.dev/tier": "gpu-batch"}}}'
Tree = dict[str, Any]


def only_in(namespace: str) -> Tree:
    """A namespaceSelector."""
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def policies(namespace: str) -> list[Tree]:
    """A MutatingAdmissionPolicy and a ValidatingAdmissionPolicy for GPU pods, with their bindings."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    common = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": only_in(namespace)},
        "matchConditions": [{"name": "asks", "expression": CONDITION}],
    }
    patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": LABELLED}}
    return [
        policy("MutatingAdmissionPolicy", {**common, "reinvocationPolicy": "IfNeeded", "mutations": [patch]}),
        policy("MutatingAdmissionPolicyBinding", {"policyName": "bench"}),
        policy("ValidatingAdmissionPolicy", {**common, "validations": [{"expression": "false"}]}),
        policy("ValidatingAdmissionPolicyBinding", {"policyName": "bench", "validationActions": ["Deny"]}),
    ]


def policy(kind: str, spec: Tree) -> Tree:
    """An object of the admission API."""
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "bench"}, "spec": spec}


def configurations(chart: Path, namespace: str) -> list[Tree]:
    """The chart's webhook configurations in Enforce, for one namespace."""
    helm = [str(Path(sys.executable).parent / "helm"), "template", namespace, str(chart)]
    command = [*helm, "--set=mode=Enforce", "--set=webhook.url=https://127.0.0.1:9"]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = [each for each in yaml.safe_load_all(rendered) if each and each["kind"] in KINDS]
    for each in found:
        each["metadata"]["name"] = namespace
        for entry in each["webhooks"]:
            entry["namespaceSelector"] = only_in(namespace)
    return found


def pod(**limits: str) -> bytes:
    """A web server's pod as a ReplicaSet makes it; it asks for GPUs only by `limits`."""
    asked = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "128Mi", **limits}}
    labels = {"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web", "pod-template-hash": "5d9c7b9f4"}
    spec = {"containers": [{"name": "main", "image": "example.com/web:1", "resources": asked}]}
    metadata = {"generateName": "web-5d9c7b9f4-", "labels": labels}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).encode()


class Client:
    """One connection to the API server that stays open."""

    def __init__(self, kubeconfig: Path) -> None:
        tree = yaml.safe_load(kubeconfig.read_text())
        cluster, user = tree["clusters"][0]["cluster"], tree["users"][0]["user"]
        trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._http = http.client.HTTPSConnection(cluster["server"].removeprefix("https://"), context=trust)
        self._headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}

    def created(self, namespace: str, body: bytes) -> bool:
        """Whether a pod is let in."""
        self._http.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body, self._headers)
        answer = self._http.getresponse()
        answer.read()
        return answer.status == http.client.CREATED

    def milliseconds(self, namespace: str, body: bytes) -> float:
        """What a create takes."""
        began = time.perf_counter()
        if not self.created(namespace, body):
            raise SystemExit(f"{namespace}: a pod without GPUs was refused")
        return (time.perf_counter() - began) * 1000


def install(cluster: ControlPlane, client: Client, namespace: str, objects: list[Tree]) -> None:
    """Into a namespace of its own, until a GPU pod is refused there."""
    cluster.kubectl("create", "namespace", namespace)
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={namespace}", "--timeout=30s")
    if not objects:
        return
    cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    deadline = time.monotonic() + 60
    while client.created(namespace, pod(**{"nvidia.com/gpu": "1"})):
        if time.monotonic() > deadline:
            raise SystemExit(f"{namespace}: what was installed has no effect")
        time.sleep(0.2)


def main() -> None:
    """Print the table."""
    charts = {f"gpu-tiers of {name}": Path(name) for name in sys.argv[1:]} | {"gpu-tiers": CHART}
    cases = {"nothing": [], "in-tree policies": policies("case-1")}
    cases |= {name: configurations(chart, f"case-{index}") for index, (name, chart) in enumerate(charts.items(), 2)}
    times: dict[str, list[float]] = {name: [] for name in cases}
    with ControlPlane(scheduler=False, kwok=False) as cluster:
        client, body = Client(cluster.kubeconfig), pod()
        for index, objects in enumerate(cases.values()):
            install(cluster, client, f"case-{index}", objects)
        for _ in range(WARM_UP + CREATES):
            for index, name in enumerate(cases):
                times[name].append(client.milliseconds(f"case-{index}", body))
    print(f"creates of a pod without GPUs through a real API server, {CREATES} a case\n")
    print("| what is installed | p50 ms | above nothing |\n|---|---|---|")
    medians = {name: statistics.median(each[WARM_UP:]) for name, each in times.items()}
    for name, median in medians.items():
        print(f"| {name} | {median:.2f} | {median - medians['nothing']:+.2f} |")


if __name__ == "__main__":
    main()
