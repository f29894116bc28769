"""The parts of a cluster that an answer rests on, each of which somebody may or may not read."""

from typing import Literal

Part = Literal[
    "classes",
    "device_classes",
    "tenants",
    "accounts",
    "namespaces",
    "nodes",
    "capacity",
    "slices",
    "allocations",
    "device_taints",
    "pods",
    "gangs",
    "pod_groups",
    "budgets",
    "configurations",
    "admission_policies",
    "certificates",
    "policy_in_force",
    "answer",
    "replica",
    "leader",
    "failed_hooks",
    "lost_pods",
    "preemption_configs",
    "version",
    "home",
    "owners",
    "claims",
]
"""What an answer rests on. `accounts`: what whoever leads has written of the tenants, which no file of theirs has.
`capacity`: the GPUs of the nodes are all that there are, for none is given by claims.
`answer`: that to a dry run. `replica`: what the replica that gave it says of itself."""
