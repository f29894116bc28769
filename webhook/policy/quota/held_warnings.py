"""Warnings of workloads whose pods wait for their turn: what their controllers do meanwhile, with the field that helps.

A table of checks by kind. What each controller does with pods that exist and do not run was tried on Kubernetes 1.37
(tests/apiserver/test_hold_workloads.py) and with JobSet, LeaderWorkerSet, KubeRay, the training operator and Knative
(tests/operators), and docs/tenants.md tells it. Of Argo's and Kruise's kinds maxSurge is taken as their CRDs say.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from webhook.objects.group_kind import GroupKind
from webhook.objects.phrase import AdmissionWarning
from webhook.objects.view import Tree, all_at, at

Check = Callable[[Tree], Iterator[AdmissionWarning]]


def held_warnings(tree: Tree, kind: GroupKind) -> Iterator[AdmissionWarning]:
    """Those of a workload that is not suspended and whose tenant holds."""
    for check in _CHECKS.get(kind, ()):
        yield from check(tree)


def _surges(tree: Tree, field: str, default: int | str) -> Iterator[AdmissionWarning]:
    """A rollout makes new pods beside the old ones, which keep their GPUs until the new ones run."""
    found = at(tree, field)
    if at(tree, "spec.strategy.type") != "Recreate" and _is_above_zero(default if found is None else found):
        yield AdmissionWarning("held-surge", field=field)


def _canary_surges(tree: Tree) -> Iterator[AdmissionWarning]:
    if at(tree, "spec.strategy.blueGreen") is None:
        yield from _surges(tree, "spec.strategy.canary.maxSurge", "25%")


def _has_deadline(tree: Tree, place: str) -> Iterator[AdmissionWarning]:
    """The clock begins when a controller has made the pods, whether or not they run."""
    for _, found in all_at(tree, place):
        if found is not None:
            yield AdmissionWarning("held-deadline", field=place.rpartition(".")[2], seconds=found)


def _starts_again(tree: Tree) -> Iterator[AdmissionWarning]:
    policy = at(tree, "spec.concurrencyPolicy") or "Allow"
    if policy != "Forbid":
        yield AdmissionWarning("held-schedule", policy=policy)


def _is_ordered(tree: Tree) -> Iterator[AdmissionWarning]:
    """Of a single pod there is no order."""
    replicas = at(tree, "spec.replicas")
    if at(tree, "spec.podManagementPolicy") != "Parallel" and isinstance(replicas, int) and replicas > 1:
        yield AdmissionWarning("held-in-order")


def _is_on_every_node(tree: Tree) -> Iterator[AdmissionWarning]:  # noqa: ARG001 - as the others
    yield AdmissionWarning("held-on-nodes")


def _is_scaled_to_zero(tree: Tree, annotations: str) -> Iterator[AdmissionWarning]:
    found = at(tree, annotations)
    told = found.get(_PROGRESS_DEADLINE) if isinstance(found, dict) else None
    yield AdmissionWarning("held-to-zero", deadline=told or "600s")


def _is_above_zero(number: object) -> bool:
    """Of a number of pods or a percentage, which controllers round up."""
    return str(number).removesuffix("%").strip("0") != ""


def _kruise(kind: str) -> GroupKind:
    return GroupKind("apps.kruise.io", kind)


_PROGRESS_DEADLINE = "serving.knative.dev/progress-deadline"
_RUN_POLICY = partial(_has_deadline, place="spec.runPolicy.activeDeadlineSeconds")
_OF_A_JOB = "template.spec.activeDeadlineSeconds"

_CHECKS: Mapping[GroupKind, tuple[Check, ...]] = {
    GroupKind("apps", "Deployment"): (partial(_surges, field="spec.strategy.rollingUpdate.maxSurge", default="25%"),),
    GroupKind("argoproj.io", "Rollout"): (_canary_surges,),
    _kruise("CloneSet"): (partial(_surges, field="spec.updateStrategy.maxSurge", default=0),),
    GroupKind("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        partial(_surges, field="spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge", default=0),
    ),
    GroupKind("batch", "Job"): (partial(_has_deadline, place="spec.activeDeadlineSeconds"),),
    GroupKind("batch", "CronJob"): (
        partial(_has_deadline, place="spec.jobTemplate.spec.activeDeadlineSeconds"),
        _starts_again,
    ),
    GroupKind("jobset.x-k8s.io", "JobSet"): (partial(_has_deadline, place=f"spec.replicatedJobs.*.{_OF_A_JOB}"),),
    GroupKind("ray.io", "RayJob"): (
        partial(_has_deadline, place="spec.activeDeadlineSeconds"),
        partial(_has_deadline, place="spec.preRunningDeadlineSeconds"),
    ),
    **{
        GroupKind("kubeflow.org", kind): (_RUN_POLICY,)
        for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
    },
    GroupKind("apps", "StatefulSet"): (_is_ordered,),
    _kruise("StatefulSet"): (_is_ordered,),
    GroupKind("apps", "DaemonSet"): (_is_on_every_node,),
    _kruise("DaemonSet"): (_is_on_every_node,),
    **{
        GroupKind("serving.knative.dev", kind): (
            partial(_is_scaled_to_zero, annotations=f"{place}metadata.annotations"),
        )
        for kind, place in (("Service", "spec.template."), ("Configuration", "spec.template."), ("Revision", ""))
    },
}
