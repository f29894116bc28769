"""Sentences that build what tests are about: pods, workloads, tenants, policies, facts.

Each builder is a value: a call gives a new one. `.json()` is the object as a user writes it, `.view()` what the policy
reads of it.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

import yaml

from webhook.config.load import parse
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Pod
from webhook.objects.view import view
from webhook.policy.assignment.request import TIER_LABEL, TierRequest, tier_request
from webhook.policy.quota.demand import demand_of
from webhook.policy.quota.tenant_quotas import read_tenant
from webhook.policy.values.facts import Facts, Group, Namespace
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, class_in_force, classes_of
from webhook.policy.workloads.kinds import BUILT_IN
from webhook.policy.workloads.workload import Workload, workload

Tree = dict[str, Any]

GPU = "nvidia.com/gpu"
HOUSE_CLASS = PriorityClass("house", 900)
SYSTEM_CLASS = PriorityClass("system-node-critical", 2_000_001_000)


@dataclass(frozen=True)
class Built:
    """An object under construction."""

    tree: Tree = field(default_factory=dict)

    def json(self) -> Tree:
        """The object; the caller may change it."""
        return copy.deepcopy(self.tree)

    def labelled(self, labels: Mapping[str, str]) -> Self:
        return self.having("metadata.labels", labels)

    def annotated(self, annotations: Mapping[str, str]) -> Self:
        return self.having("metadata.annotations", annotations)

    def of_tier(self, tier: str) -> Self:
        """With the tier label."""
        return self.labelled({TIER_LABEL: tier})

    def having(self, path: str, value: object) -> Self:
        """With a value at a dotted path; maps and lists there are added to."""
        tree = self.json()
        *steps, last = path.split(".")
        place = tree
        for step in steps:
            place = place.setdefault(step, {})
        there = place.get(last)
        if isinstance(there, dict) and isinstance(value, Mapping):
            place[last] = there | dict(value)
        elif isinstance(there, list) and isinstance(value, list):
            place[last] = there + value
        else:
            place[last] = copy.deepcopy(value)
        return type(self)(tree)


class WorkloadBuilder(Built):
    """A workload of any kind."""

    def reference(self) -> Tree:
        """The owner reference by which what it controls names it."""
        metadata = self.tree["metadata"]
        kind = {"apiVersion": self.tree["apiVersion"], "kind": self.tree["kind"]}
        return {**kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}

    def view(self) -> Workload:
        group = str(self.tree["apiVersion"]).rpartition("/")[0]
        return workload(self.json(), BUILT_IN.by_kind[GroupKind(group, self.tree["kind"])])


class PodBuilder(Built):
    """A pod, or with `.template()` a workload's pod template."""

    def asking(self, gpus: object = 1, *, resource: str = GPU, name: str = "main", **more: object) -> Self:
        """With one more app container that asks for so many of a resource."""
        return self.having("spec.containers", [_container(name, resource, gpus, more)])

    def with_init(self, gpus: object = 1, *, resource: str = GPU, name: str = "init", **more: object) -> Self:
        """With one more init container."""
        return self.having("spec.initContainers", [_container(name, resource, gpus, more)])

    def with_sidecar(self, gpus: object = 1, *, name: str = "sidecar") -> Self:
        """With one more init container that keeps running (KEP-753)."""
        return self.with_init(gpus, name=name, restartPolicy="Always")

    def running(self, *command: str, image: str = "pytorch/pytorch:2.13.0", name: str = "main") -> Self:
        """With one more app container that asks for nothing."""
        return self.having("spec.containers", [{"name": name, "image": image, "command": list(command)}])

    def of_class(self, name: str) -> Self:
        return self.having("spec.priorityClassName", name)

    def in_group(self, name: str) -> Self:
        return self.having("spec.schedulingGroup", {"podGroupName": name})

    def owned_by(self, owner: WorkloadBuilder) -> Self:
        return self.having("metadata.ownerReferences", [owner.reference()])

    def template(self) -> Tree:
        """What a workload carries of it."""
        metadata = {key: value for key, value in self.json()["metadata"].items() if key in ("labels", "annotations")}
        return {"metadata": metadata, "spec": self.json()["spec"]}

    def view(self) -> Pod:
        return view(self.json(), Pod)


def _container(name: str, resource: str, gpus: object, more: Mapping[str, object]) -> Tree:
    resources = {"limits": {resource: gpus}, "requests": {resource: gpus}}
    return {"name": name, "image": "pytorch/pytorch:2.13.0", "resources": resources, **more}


def a_pod(name: str = "pod-1", namespace: str = "team-alpha") -> PodBuilder:
    """A pod without containers; `.asking()` and `.running()` add them."""
    metadata = {"name": name, "namespace": namespace}
    return PodBuilder({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}})


def a_workload(api_version: str, kind: str, name: str = "work", **spec: object) -> WorkloadBuilder:
    """A workload with a spec."""
    metadata = {"name": name, "namespace": "team-alpha", "uid": f"uid-of-{name}"}
    return WorkloadBuilder({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})


def a_job(pod: PodBuilder | None = None, name: str = "work", **spec: object) -> WorkloadBuilder:
    """A Job of one template."""
    return a_workload("batch/v1", "Job", name, template=(pod or a_pod().asking()).template(), **spec)


def a_deployment(pod: PodBuilder | None = None, name: str = "work", replicas: int = 1) -> WorkloadBuilder:
    """A Deployment."""
    return a_workload("apps/v1", "Deployment", name, replicas=replicas, template=(pod or a_pod().asking()).template())


def a_pytorchjob(pod: PodBuilder | None = None, name: str = "work", workers: int = 1) -> WorkloadBuilder:
    """A PyTorchJob of workers alone."""
    worker = {"replicas": workers, "template": (pod or a_pod().asking()).template()}
    return a_workload("kubeflow.org/v1", "PyTorchJob", name, pytorchReplicaSpecs={"Worker": worker})


class TenantBuilder(Built):
    """A TenantQuota."""

    def allowing(self, gpus: object, *, tier: str | None = None, flavor: str | None = None) -> Self:
        """With one more row of its quotas."""
        row = {"gpus": gpus, "tier": tier, "resourceFlavor": flavor}
        return self.having("spec.quotas", [{key: value for key, value in row.items() if value is not None}])

    def view(self) -> Tenant:
        return read_tenant(self.json())


def a_tenant(name: str = "alpha", *, namespace: str = "team-alpha", **spec: object) -> TenantBuilder:
    """The tenant of one namespace."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    metadata = {"name": name, "creationTimestamp": "2026-11-01T08:00:00Z"}
    tree = {"apiVersion": "gpu-tiers.dev/v1alpha1", "kind": "TenantQuota", "metadata": metadata}
    return TenantBuilder({**tree, "spec": {"namespaceSelector": selector, "quotas": [], **spec}})


def a_policy(preset: str = "four-tier", **fields: object) -> TierPolicy:
    """A preset's policy, with further fields as the policy file has them."""
    return _parsed(policy_file(preset=preset, **fields))


def policy_file(**fields: object) -> str:
    """A policy file's text."""
    head = {"apiVersion": "config.gpu-tiers.dev/v1alpha1", "kind": "TierPolicy", "mode": "Enforce"}
    return yaml.safe_dump(head | fields, sort_keys=False)


@cache
def _parsed(text: str) -> TierPolicy:
    return parse(text)


def live_classes(policy: TierPolicy, *others: PriorityClass) -> dict[str, PriorityClass]:
    """The classes of the tiers as a cluster has them, and some that are no tier's."""
    own = [live for tier in policy.tiers for live in classes_of(tier)]
    return {live.name: live for live in (*own, HOUSE_CLASS, SYSTEM_CLASS, *others)}


def some_facts(
    *owners: WorkloadBuilder,
    policy: TierPolicy | None = None,
    tenant: TenantBuilder | None = None,
    group: str | None = None,
    labels: Mapping[str, str] | None = None,
    classes: Iterable[PriorityClass] = (),
) -> Facts:
    """What a cluster says: owners (the nearest first), the tenant, the tier of the pod's group, namespace labels."""
    policy = policy or a_policy()
    tier = policy.tiers.get(group or "")
    name = class_in_force(tier, adoption=policy.adoption) if tier else group or ""
    return Facts(
        namespace=Namespace("team-alpha", labels or {}),
        classes=live_classes(policy, *classes),
        owners=tuple(owner.view() for owner in owners),
        tenant=tenant.view() if tenant else None,
        group=Group("gang", name, tier.value if tier else 0) if group is not None else None,
    )


def an_ask(pod: PodBuilder, *owners: WorkloadBuilder, policy: TierPolicy | None = None, **facts: Any) -> TierRequest:
    """What a pod asks for, under those facts."""
    policy = policy or a_policy()
    seen = pod.view()
    holds = demand_of(seen, (), policy) > 0
    return tier_request(seen, some_facts(*owners, policy=policy, **facts), policy, holds_gpus=holds)
