"""Keeps preemptions from failing a Job for good: a podFailurePolicy for one that has none, warnings for others.

Rules are tried in their order, and the first that matches decides.
Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
"""

from collections.abc import Iterable, Iterator

from webhook.objects.group_kind import GroupKind
from webhook.objects.phrase import AdmissionWarning
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree, View, all_at, at, mapped, view

DEFAULT_BACKOFF = 6
"""What the API server writes where nothing stands."""
SMALL_BACKOFF = 20
"""Preemptions that a training run of weeks may well see: a higher limit was set by somebody who counted on them."""
ENDED_BY_SIGTERM = 143
MOST_RULES = 20
"""Of a podFailurePolicy, as the API server allows."""


class ExitCodes(View, frozen=True):
    """The exit codes of a rule."""

    operator: str = ""
    values: tuple[int, ...] = ()


class Condition(View, frozen=True):
    """A pod's condition that a rule is about."""

    type: str = ""
    status: str = "True"


class FailureRule(View, frozen=True):
    """One rule of a podFailurePolicy."""

    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[Condition, ...] = ()

    @property
    def on_preemption(self) -> bool:
        """Tells whether it is about pods that were disrupted."""
        return any((each.type, each.status) == ("DisruptionTarget", "True") for each in self.on_pod_conditions)

    @property
    def on_sigterm(self) -> bool:
        """Tells whether it is also about the exit code of a program that SIGTERM ended."""
        codes = self.on_exit_codes
        return codes is not None and (ENDED_BY_SIGTERM in codes.values) == (codes.operator == "In")


class FailurePolicy(View, frozen=True):
    """A Job's podFailurePolicy."""

    rules: tuple[FailureRule, ...] = ()


class JobSpec(View, frozen=True):
    """A Job's spec, as far as failures are concerned."""

    backoff_limit: int = DEFAULT_BACKOFF
    pod_failure_policy: FailurePolicy | None = None
    pod_replacement_policy: str = ""
    template: Pod = Pod()


class _Job(View, frozen=True):
    spec: JobSpec = JobSpec()


class _Named(View, frozen=True):
    template: _Job = _Job()


class _Holder(View, frozen=True):
    """The specs in which Jobs lie: a CronJob's, a JobSet's, which a TrainJob's runtime holds."""

    job_template: _Job = _Job()
    replicated_jobs: tuple[_Named, ...] = ()


_PREEMPTED: Tree = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
_OWNED = "fieldsV1.f:spec.f:podReplacementPolicy"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def fields_due(tree: Tree, saving: Iterable[str]) -> Tree:
    """The fields of a Job's spec by which no preemption counts; none where it has a policy, or can't have one.

    Neither a preempted pod counts, nor one of which a container that saves has ended as after SIGTERM. Of other
    containers that says nothing: a sidecar ends so beside a program that crashed.
    """
    try:
        spec = view(tree.get("spec") or {}, JobSpec)
    except Refused:
        return {}
    ended = {"operator": "In", "values": [ENDED_BY_SIGTERM]}
    rules = [_PREEMPTED, *({"action": "Ignore", "onExitCodes": {"containerName": name, **ended}} for name in saving)]
    fields = {"podFailurePolicy": {"rules": rules}, "podReplacementPolicy": "Failed"}
    return fields if len(rules) <= MOST_RULES and _is_free(spec, tree) else {}


def _is_free(spec: JobSpec, tree: Tree) -> bool:
    """Tells whether a Job may have a policy of ours: it needs restartPolicy Never, and replaces what has ended.

    The API server writes podReplacementPolicy where nobody does, before any webhook sees the Job.
    """
    never = spec.template.spec.restart_policy == "Never" and spec.pod_failure_policy is None
    return never and (spec.pod_replacement_policy in ("", "Failed") or not _wrote_replacement(tree))


def _wrote_replacement(tree: Tree) -> bool:
    """Tells whether a person did: who applies the same manifest again must not find another value."""
    fields = at(tree, "metadata.managedFields")
    applied = [each for each in fields if at(each, "operation") == "Apply"] if isinstance(fields, list) else []
    notes = at(tree, "metadata.annotations")
    text = notes.get(_LAST_APPLIED) if isinstance(notes, dict) else ""
    return "podReplacementPolicy" in str(text) or any(at(each, _OWNED) is not None for each in applied)


def job_warnings(tree: Tree, kind: GroupKind, *, adds: bool) -> tuple[AdmissionWarning, ...]:
    """Warnings on the Jobs of a workload; none where their shape is wrong, which the API server says.

    `adds`: the policy lets us add a podFailurePolicy, so that a Job that gets one needs no warning.
    """
    try:
        found = [(path, spec) for path, spec in _jobs(tree, kind) if not (adds and _is_free(spec, tree))]
        told = [warning for path, spec in found for warning in _said(path, spec)]
        return tuple(dict.fromkeys((*told, *_never_again(tree, kind))))
    except Refused:
        return ()


_RESTARTS = frozenset({"OnFailure", "Always", "ExitCode"})
_EXIT_CODE = frozenset({"ExitCode"})
REPLICAS = {
    GroupKind("kubeflow.org", "PyTorchJob"): ("spec.pytorchReplicaSpecs.*", "OnFailure", _RESTARTS),
    GroupKind("kubeflow.org", "TFJob"): ("spec.tfReplicaSpecs.*", "Never", _RESTARTS),
    GroupKind("kubeflow.org", "XGBoostJob"): ("spec.xgbReplicaSpecs.*", "Never", _EXIT_CODE),
    GroupKind("kubeflow.org", "PaddleJob"): ("spec.paddleReplicaSpecs.*", "OnFailure", _RESTARTS),
    GroupKind("kubeflow.org", "JAXJob"): ("spec.jaxReplicaSpecs.*", "Never", _RESTARTS),
    GroupKind("kubeflow.org", "MPIJob"): ("spec.mpiReplicaSpecs.*", "Never", _EXIT_CODE),
}
"""Where the training operator is told whether it makes a failed pod again, what it takes where nothing stands, and with
which of them it goes on: kubeflow.org/v1, RestartPolicy, and UpdateJobStatus of each controller."""


def _never_again(tree: Tree, kind: GroupKind) -> Iterator[AdmissionWarning]:
    if kind not in REPLICAS or tree.get("apiVersion") == "kubeflow.org/v2beta1":  # the MPI operator's launcher is a Job
        return
    place, default, goes_on = REPLICAS[kind]
    for path, found in all_at(tree, place):
        policy = mapped(found).get("restartPolicy") or default
        if isinstance(policy, str) and policy not in goes_on:
            yield AdmissionWarning("replicas-never", replica=path[-1], policy=policy, kind=kind.kind)


def _jobs(tree: Tree, kind: GroupKind) -> Iterator[tuple[str, JobSpec]]:
    spec = tree.get("spec") or {}
    match kind:
        case ("batch", "Job"):
            yield "spec", view(spec, JobSpec)
        case ("batch", "CronJob"):
            yield "spec.jobTemplate.spec", view(spec, _Holder).job_template.spec
        case ("jobset.x-k8s.io", "JobSet"):
            yield from _replicated("spec", spec)
        case ("trainer.kubeflow.org", "TrainJob"):
            yield from _replicated("runtime", mapped(at(tree, "runtime.spec.template.spec")))


def _replicated(place: str, spec: Tree) -> Iterator[tuple[str, JobSpec]]:
    for index, each in enumerate(view(spec, _Holder).replicated_jobs):
        yield f"{place}.replicatedJobs[{index}].template.spec", each.template.spec


def _said(path: str, spec: JobSpec) -> Iterator[AdmissionWarning]:
    rules = spec.pod_failure_policy.rules if spec.pod_failure_policy else ()
    for index, rule in enumerate(rules):
        if rule.on_preemption:
            if rule.action != "Ignore":
                break
            return
        if rule.on_sigterm and rule.action != "Ignore":
            yield AdmissionWarning("job-exit-code", path=f"{path}.podFailurePolicy.rules[{index}]")
            return
    if spec.backoff_limit >= SMALL_BACKOFF:
        return
    if path.startswith("runtime"):
        yield AdmissionWarning("runtime-backoff", limit=spec.backoff_limit)
    else:
        yield AdmissionWarning("job-backoff", limit=spec.backoff_limit)
