"""Warns where preemptions fail a Job for good, by its backoffLimit and its podFailurePolicy.

Rules are tried in their order, and the first that matches decides.
Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
"""

from collections.abc import Iterator

from webhook.objects.group_kind import GroupKind
from webhook.objects.phrase import AdmissionWarning
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree, View, view

DEFAULT_BACKOFF = 6
"""What the API server writes where nothing stands."""
SMALL_BACKOFF = 20
"""Preemptions that a training run of weeks may well see: a higher limit was set by somebody who counted on them."""
ENDED_BY_SIGTERM = 143


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
    pod_failure_policy: FailurePolicy = FailurePolicy()


class _Job(View, frozen=True):
    spec: JobSpec = JobSpec()


class _Named(View, frozen=True):
    template: _Job = _Job()


class _Holder(View, frozen=True):
    """The specs in which Jobs lie: a CronJob's, a JobSet's."""

    job_template: _Job = _Job()
    replicated_jobs: tuple[_Named, ...] = ()


def job_warnings(tree: Tree, kind: GroupKind) -> tuple[AdmissionWarning, ...]:
    """Warnings on the Jobs of a workload; none where their shape is wrong, which the API server says."""
    try:
        return tuple(dict.fromkeys(warning for path, spec in _jobs(tree, kind) for warning in _said(path, spec)))
    except Refused:
        return ()


def _jobs(tree: Tree, kind: GroupKind) -> Iterator[tuple[str, JobSpec]]:
    spec = tree.get("spec") or {}
    match kind:
        case ("batch", "Job"):
            yield "spec", view(spec, JobSpec)
        case ("batch", "CronJob"):
            yield "spec.jobTemplate.spec", view(spec, _Holder).job_template.spec
        case ("jobset.x-k8s.io", "JobSet"):
            for index, each in enumerate(view(spec, _Holder).replicated_jobs):
                path = f"spec.replicatedJobs[{index}].template.spec"
                yield path, each.template.spec


def _said(path: str, spec: JobSpec) -> Iterator[AdmissionWarning]:
    for index, rule in enumerate(spec.pod_failure_policy.rules):
        if rule.on_preemption:
            if rule.action != "Ignore":
                break
            return
        if rule.on_sigterm and rule.action != "Ignore":
            yield AdmissionWarning("job-exit-code", path=f"{path}.podFailurePolicy.rules[{index}]")
            return
    if spec.backoff_limit < SMALL_BACKOFF:
        yield AdmissionWarning("job-backoff", limit=spec.backoff_limit)
