"""The chart and the webhook of this checkout on the tests' cluster, and what a test does with them."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import yaml

from installation.examples import example_policy
from installation.helm import RELEASE, ROOT, helm
from installation.local_webhook import Address, install_chart, installed_policy, policy_file, start_webhook
from installation.readiness import wait_for_webhook
from localcluster import Cluster, Result
from localcluster.for_tests import missing
from localcluster.ports import free_ports
from localcluster.waiting import wait_until
from tests.builders import tenant_quota

Tree = dict[str, Any]

SECONDS = 240
QUICK = ("--create-timeout=10", "--lease-seconds=3")
"""What is under way has ended, and a dead leader is replaced, sooner than in a cluster: no test waits long for it."""

VALUES = {"mode": "Enforce", "policy": example_policy()}


class Installed:
    """gpu-tiers in Enforce, its process beside the API server."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.api = cluster.api
        _nobody_elses(cluster)
        self.address: Address = install_chart(cluster, **VALUES)
        (self.page_tls_port,) = free_ports(1)
        self.process = start_webhook(cluster, self.address, *self._options)
        wait_for_webhook(cluster)
        self.eventually(self._file_is_published, "the active policy, published")

    def end(self) -> None:
        """Leave the cluster without it."""
        if self.process.popen.poll() is None:
            self.cluster.processes.end(self.process)
        helm(self.cluster, "uninstall", RELEASE, f"--namespace={RELEASE}", "--wait")

    def kill(self) -> None:
        """The process dies at once; the configurations stay."""
        self.process.popen.kill()
        self.cluster.processes.end(self.process)

    def restart(self, *options: str) -> None:
        """Start it again at the same address, with these options beside its own."""
        self.process = start_webhook(self.cluster, self.address, *self._options, *options)

    def change_leader(self, *options: str) -> None:
        """The process dies, and the next one goes on."""
        self.kill()
        self.restart(*options)

    @property
    def _options(self) -> tuple[str, ...]:
        return (*QUICK, f"--page-tls-port={self.page_tls_port}")

    def upgrade(self, **values: object) -> None:
        """`helm upgrade` with these values beside the examples' policy, and the new policy active."""
        chosen = VALUES | {"webhook": self.address.values} | values
        chart = str(ROOT / "charts" / "gpu-tiers")
        how = (f"--namespace={RELEASE}", "--values=-", "--disable-openapi-validation")
        helm(self.cluster, "upgrade", RELEASE, chart, *how, input=json.dumps(chosen))
        self.write_policy(installed_policy(self.cluster))
        self.eventually(self._file_is_published, "the active policy, published")

    @contextmanager
    def policy_with(self, **keys: object) -> Iterator[None]:
        """The policy with other values of these keys as long as the block lasts: what only the process reads of it."""
        before = installed_policy(self.cluster)
        self.change_policy(yaml.safe_dump(yaml.safe_load(before) | keys))
        self.eventually(self._file_is_published, "the active policy, published")
        yield
        self.change_policy(before)
        self.eventually(self._file_is_published, "the active policy, published")

    def write_policy(self, text: str, result: str = "success") -> None:
        """Change the policy file and wait until the process has looked at it."""
        before = self.metric("gpu_tiers_policy_reloads_total", result=result)
        file = policy_file(self.cluster)
        if file.read_text() != text:
            file.write_text(text)
            wait_until(
                lambda: self.metric("gpu_tiers_policy_reloads_total", result=result) > before, SECONDS, "a reload"
            )

    def change_policy(self, text: str, result: str = "success") -> None:
        """Change the ConfigMap, and the file that a kubelet would make of it."""
        self.api.patch(f"configmap/{RELEASE}", {"data": {"policy.yaml": text}}, RELEASE)
        self.write_policy(text, result)

    @property
    def published(self) -> dict[str, str]:
        """Return what the leader publishes about the active policy."""
        return dict(self.get(f"configmap/{RELEASE}-active", RELEASE).get("data") or {})

    def _file_is_published(self) -> bool:
        return self.published.get("in-force.yaml") == policy_file(self.cluster).read_text()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that bear these labels."""
        return metric_of(self.address, name, **labels)

    def metrics(self) -> str:
        """Return the metrics as Prometheus would read them."""
        return metrics_of(self.address)

    def log(self) -> str:
        """Return the log of the process."""
        return self.process.log.read_text()

    def tenant(self, name: str, namespace: str, **spec: object) -> None:
        """Make a TenantQuota that selects a namespace by its name, and wait until it is active.

        What an earlier TenantQuota of that name had booked in other namespaces has moved away by then.
        """
        self.api.apply(tenant_quota(name, namespace, **spec))

        def has_own_namespaces() -> bool:
            ledger = self.get(f"tenantquota/{name}", "").get("status", {}).get("ledger", {})
            return all(state == "open" for state in ledger.get("namespaces", {}).values())

        wait_until(lambda: self._is_ready(f"tenantquota/{name}"), SECONDS, f"{name}, active")
        wait_until(has_own_namespaces, SECONDS, f"{name}, without the namespaces that it had")

    @contextmanager
    def tenant_for(self, name: str, namespace: str, **spec: object) -> Iterator[str]:
        """A tenant as long as the block lasts."""
        self.tenant(name, namespace, **spec)
        yield name
        self.api.delete(f"tenantquota/{name}")

    def _is_ready(self, what: str) -> bool:
        """Return whether an object is ready in its current generation, not in an earlier one."""
        tree = self.get(what, "")
        ready = [each for each in tree.get("status", {}).get("conditions", []) if each["type"] == "Ready"]
        generation = tree["metadata"]["generation"]
        return any(each["status"] == "True" and each.get("observedGeneration") in {None, generation} for each in ready)

    def usage(self, name: str) -> str:
        """Return a tenant's usage as `kubectl get tenantquota` shows it."""
        return str(self.get(f"tenantquota/{name}", "").get("status", {}).get("summary", ""))

    def condition(self, name: str, kind: str) -> Tree:
        """A condition of a tenant, empty where it has none of that kind."""
        conditions = self.get(f"tenantquota/{name}", "").get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), {})

    def create(
        self, tree: Tree, namespace: str, *, dry_run: bool = False, user: str = "", strict: bool = True
    ) -> Result:
        """Create an object, whatever comes of it; the Result is what kubectl would say."""
        for _ in range(10):
            made = self.api.create(tree, namespace, dry_run=dry_run, user=user, strict=strict, check=False)
            # Until its cache has the parameters of a new ValidatingAdmissionPolicy, the API server reads them again
            # for each pod, for at most 1 s (getParamDirectly of k8s.io/apiserver). On a busy machine that is too short.
            if "failed to configure binding" not in made.stderr:
                break
        return made

    def get(self, what: str, namespace: str) -> Tree:
        """One object, or a list."""
        return self.api.get(what, namespace)

    def messages(self, namespace: str, selector: str) -> str:
        """Return the messages of the events that a field selector finds."""
        found = self.api.get("events", namespace, fieldSelector=selector)["items"]
        return "\n".join(str(each["message"]) for each in found)

    def bind(self, name: str, role: str, account: str, namespace: str, *, everywhere: bool = False) -> None:
        """Give a ServiceAccount of a namespace a ClusterRole, there or everywhere."""
        kind = "ClusterRoleBinding" if everywhere else "RoleBinding"
        subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        tree = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
        self.api.create({**tree, "subjects": [subject], "roleRef": reference}, namespace)

    def wait_for_earlier_tests(self) -> None:
        """Wait until their pods are gone, and the namespaces that were deleted."""

        def have_gone() -> bool:
            found = [json.loads(self.api.text(f"/api/v1/{kind}"))["items"] for kind in ("pods", "namespaces")]
            return not any("deletionTimestamp" in each["metadata"] for items in found for each in items)

        self.eventually(have_gone, "the end of earlier tests")

    def eventually(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something that the cluster brings about."""
        wait_until(holds, SECONDS, what, pause=0.3)


def _nobody_elses(cluster: Cluster) -> None:
    """Refuse a cluster of GPU_TIERS_TEST_CLUSTER with somebody's installation, or one that can't call us."""
    if not cluster.kubectl("get", "validatingwebhookconfiguration", "zz-gpu-tiers", check=False).code:
        missing("gpu-tiers is installed on this cluster already; name one without it (python -m localcluster up)")
    view = cluster.kubectl("config", "view", "--minify", "-o=jsonpath={.clusters[0].cluster.server}")
    if urlsplit(view.stdout).hostname not in {"127.0.0.1", "localhost", "::1"}:
        missing("the API server runs on another machine and could not call a webhook on this one")


def gpu_pod(name: str, gpus: int = 1, *, tier: str | None = None, node: str | None = None, **spec: object) -> Tree:
    """A pod as a user writes it, bound to a node; without one to none there is, for other tests need their GPUs."""
    labels = {"gpu-tiers.dev/tier": tier} if tier else {}
    selector = {"nodeSelector": {"kubernetes.io/hostname": node or "nowhere"}}
    container = {"name": "main", "image": "registry.example/work:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [container], **selector, **spec},
    }


def gpu_job(name: str, gpus: int, node: str | None = None, **spec: object) -> Tree:
    template = {"spec": {**gpu_pod(name, gpus, node=node)["spec"], "restartPolicy": "Never"}}
    metadata = {"name": name, "labels": {"gpu-tiers.dev/tier": "gpu-training"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template, **spec}}


def gpu_deployment(name: str, gpus: int, node: str | None = None, tier: str = "gpu-serving", replicas: int = 1) -> Tree:
    labels, pod = {"app": name}, gpu_pod(name, gpus, node=node)["spec"]
    template = {"metadata": {"labels": labels}, "spec": pod}
    metadata = {"name": name, "labels": {"gpu-tiers.dev/tier": tier}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def metric_of(address: Address, name: str, **labels: str) -> float:
    """The sum of a metric's samples that bear these labels, as one replica has counted."""
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    lines = [line for line in metrics_of(address).splitlines() if line.split("{")[0].split(" ")[0] == name]
    return sum(float(line.rpartition(" ")[2]) for line in lines if all(each in line for each in wanted))


def metrics_of(address: Address) -> str:
    """Return the metrics as Prometheus would read them."""
    connection = http.client.HTTPConnection("127.0.0.1", address.metrics_port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text
