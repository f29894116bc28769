"""Knative Serving without ingress: its activator is only a Service, so revisions get pods but no requests."""

from localcluster.operators import binaries
from localcluster.operators.operator import Operator

MODULE = "knative.dev/serving"
NAMESPACE = "knative-serving"

FILES = (
    "100-namespace",
    "200-serviceaccount",
    "200-roles/clusterrole",
    *(f"300-resources/{each}" for each in ("configuration", "metric", "podautoscaler", "revision", "route", "service")),
    *(f"configmaps/{each}" for each in ("autoscaler", "defaults", "deployment", "domain", "features", "gc")),
    *(f"configmaps/{each}" for each in ("leader-election", "logging", "observability")),
    "deployments/activator",
    *(f"webhooks/{each}" for each in ("configmap-validation", "defaulting", "resource-validation", "secret")),
)
NETWORKING = ("certificate", "config-network", "domain-claim", "ingress", "serverlessservice")

WEBHOOK = Operator(
    binary=binaries.KNATIVE_WEBHOOK,
    module=MODULE,
    manifests=tuple(f"config/core/{each}.yaml" for each in FILES),
    others=(
        *(("knative.dev/networking", f"config/{each}.yaml") for each in NETWORKING),
        ("knative.dev/caching", "config/image.yaml"),
    ),
    namespace=NAMESPACE,
    account="controller",
    arguments=(),
    environment={
        "SYSTEM_NAMESPACE": NAMESPACE,
        "WEBHOOK_NAME": "webhook",
        "WEBHOOK_PORT": "$webhook",
        "PROFILING_PORT": "$probe",
    },
    ready="",
)
"""The webhook. It installs all of Knative's manifests, so it starts before the controllers."""

CONTROLLERS = Operator(
    binary=binaries.KNATIVE,
    module=MODULE,
    manifests=(),
    namespace=NAMESPACE,
    account="controller",
    arguments=("--disable-ha",),
    environment={"SYSTEM_NAMESPACE": NAMESPACE, "PROFILING_PORT": "$webhook"},
    ready="",
)
"""The controllers and the autoscaler of revisions, in one process."""
