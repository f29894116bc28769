"""Sentences that build what tests are about: pods, workloads, tenants, policies, facts.

Each builder is a value: a call gives a new one. `.json()` is the object as a user writes it, `.view()` what the policy
reads of it, `.sent()` a pod as the API server sends it. `tests.builders.world` is the API server's half of a review.
"""

from tests.builders.built import Built, Tree
from tests.builders.claims import NICS, a_claim, a_claim_template, a_claiming_pod, a_device_class
from tests.builders.facts import (
    HOUSE_CLASS,
    SYSTEM_CLASS,
    a_tier_request,
    assigned,
    hook_decided,
    live_classes,
    some_facts,
    type_of,
)
from tests.builders.pods import GPU, IMAGE, TOKEN, PodBuilder, a_pod
from tests.builders.policies import a_policy, policy_file
from tests.builders.tenants import TenantBuilder, a_namespace, a_tenant, tenant_quota
from tests.builders.workloads import (
    WorkloadBuilder,
    a_composite_podgroup,
    a_deployment,
    a_job,
    a_notebook,
    a_podgroup,
    a_pytorchjob,
    a_replicaset,
    a_scheduling_workload,
    a_workload,
)

__all__ = [
    "GPU",
    "HOUSE_CLASS",
    "IMAGE",
    "NICS",
    "SYSTEM_CLASS",
    "TOKEN",
    "Built",
    "PodBuilder",
    "TenantBuilder",
    "Tree",
    "WorkloadBuilder",
    "a_claim",
    "a_claim_template",
    "a_claiming_pod",
    "a_composite_podgroup",
    "a_deployment",
    "a_device_class",
    "a_job",
    "a_namespace",
    "a_notebook",
    "a_pod",
    "a_podgroup",
    "a_policy",
    "a_pytorchjob",
    "a_replicaset",
    "a_scheduling_workload",
    "a_tenant",
    "a_tier_request",
    "a_workload",
    "assigned",
    "hook_decided",
    "live_classes",
    "policy_file",
    "some_facts",
    "tenant_quota",
    "type_of",
]
