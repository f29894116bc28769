"""Keeps preemptions from failing a Job for good: a podFailurePolicy for one that has none, warnings for others.

A warning follows from three answers: what the Job's rules do with a preempted pod, how many such pods the Job survives,
and what a JobSet does when the Job fails. Rules are tried in their order, and the first that matches decides.
Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
JobSet's rules: executeFailurePolicy in pkg/controllers/failure_policy.go of kubernetes-sigs/jobset.
"""

from collections.abc import Iterable, Iterator

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Pod
from webhook.objects.refusal import AdmissionWarning, Phrase, Refused
from webhook.objects.view import Tree, View, all_at, at, listed, mapped, view
from webhook.policy.workloads.kind_table import KindRow

JOB = GroupKind("batch", "Job")
DEFAULT_BACKOFF = 6
"""The backoffLimit that the API server writes if none is set."""
ENOUGH = 20
"""Preemptions that a training run of weeks may see. Whoever set a higher limit counted on them."""
ENDED_BY_SIGTERM = 143
MOST_RULES = 20
"""Rules in a podFailurePolicy, as the API server allows."""


class ExitCodes(View, frozen=True):
    """The exit codes of a rule."""

    operator: str = ""
    values: tuple[int, ...] = ()


class Condition(View, frozen=True):
    """The condition of a pod that a rule matches."""

    type: str = ""
    status: str = "True"


class FailureRule(View, frozen=True):
    """One rule of a podFailurePolicy."""

    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[Condition, ...] = ()

    @property
    def on_preemption(self) -> bool:
        """Tell whether the rule matches disrupted pods, such as preempted ones."""
        return any((each.type, each.status) == ("DisruptionTarget", "True") for each in self.on_pod_conditions)

    @property
    def on_sigterm(self) -> bool:
        """Tell whether the rule matches 143, the exit code of a program that SIGTERM ended."""
        codes = self.on_exit_codes
        return codes is not None and (ENDED_BY_SIGTERM in codes.values) == (codes.operator == "In")


class FailurePolicy(View, frozen=True):
    """A Job's podFailurePolicy."""

    rules: tuple[FailureRule, ...] = ()


class JobSpec(View, frozen=True):
    """The fields of a Job's spec that concern failures."""

    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    pod_failure_policy: FailurePolicy | None = None
    pod_replacement_policy: str = ""
    template: Pod = Pod()

    @property
    def rules(self) -> tuple[FailureRule, ...]:
        return self.pod_failure_policy.rules if self.pod_failure_policy else ()

    @property
    def limit(self) -> tuple[str, int]:
        """Return the field that bounds how many pods may fail, and its value. A limit per index removes the default."""
        per_index, whole = self.backoff_limit_per_index, self.backoff_limit
        if per_index is None:
            return "backoffLimit", DEFAULT_BACKOFF if whole is None else whole
        if whole is not None and whole < per_index:
            return "backoffLimit", whole
        return "backoffLimitPerIndex", per_index


class RestartRule(View, frozen=True):
    """One rule of a JobSet's failurePolicy."""

    action: str = ""
    on_job_failure_reasons: tuple[str, ...] = ()
    on_job_failure_message_patterns: tuple[str, ...] = ()
    target_replicated_jobs: tuple[str, ...] = ()


class RestartPolicy(View, frozen=True):
    """A JobSet's failurePolicy."""

    max_restarts: int = 0
    rules: tuple[RestartRule, ...] = ()


class _Job(View, frozen=True):
    spec: JobSpec = JobSpec()


class _Named(View, frozen=True):
    name: str = ""
    template: _Job = _Job()


class _Holder(View, frozen=True):
    """The specs that contain Jobs: a CronJob's, a JobSet's, and the JobSet in a TrainJob's runtime."""

    job_template: _Job = _Job()
    replicated_jobs: tuple[_Named, ...] = ()
    failure_policy: RestartPolicy | None = None


class JobSeen(View, frozen=True):
    """A Job in a workload: its place, its spec, and the failurePolicy of its JobSet, None without one."""

    path: str
    spec: JobSpec
    name: str = ""
    restarts: RestartPolicy | None = None

    def after(self, reason: str) -> tuple[str, int]:
        """Return the JobSet's action on a Job that fails for this reason, and how many such failures it survives.

        That is "" and 0 without a JobSet, and ENOUGH if it restarts without a limit. A rule with message patterns may
        match or not. It counts only if it restarts without a limit, so that no false warning appears.
        """
        if self.restarts is None:
            return "", 0
        for rule in self.restarts.rules:
            named = not rule.target_replicated_jobs or self.name in rule.target_replicated_jobs
            applies = named and (not rule.on_job_failure_reasons or reason in rule.on_job_failure_reasons)
            uncounted = rule.action.endswith("AndIgnoreMaxRestarts")
            if applies and (uncounted or not rule.on_job_failure_message_patterns):
                most = ENOUGH if uncounted else 0 if rule.action == "FailJobSet" else self.restarts.max_restarts
                return rule.action, most
        return "RestartJobSet", self.restarts.max_restarts


_PREEMPTED: Tree = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
_OWNED = "fieldsV1.f:spec.f:podReplacementPolicy"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def fields_due(tree: Tree, saving: Iterable[str]) -> Tree:
    """Return the spec fields that keep preemptions from counting; none if the Job has a policy, or can't have one.

    `saving` are the names of containers that save; with too many of them the Job gets no fields either.

    A preempted pod does not count, nor does a pod whose saving container ended with 143, as after SIGTERM. The code
    of another container proves nothing, because a sidecar ends with it next to a program that crashed.
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
    """Tell whether a Job may get our policy: it has none, restartPolicy Never, and podReplacementPolicy is free."""
    if spec.template.spec.restart_policy != "Never" or spec.pod_failure_policy is not None:
        return False
    if spec.pod_replacement_policy in ("", "Failed"):
        return True
    # The API server defaults podReplacementPolicy before any webhook sees the Job. A person who sets it and applies the
    # same manifest again must not find another value.
    applied = [each for each in listed(at(tree, "metadata.managedFields")) if at(each, "operation") == "Apply"]
    text = mapped(at(tree, "metadata.annotations")).get(_LAST_APPLIED, "")
    return "podReplacementPolicy" not in str(text) and all(at(each, _OWNED) is None for each in applied)


LOST_NODE = AdmissionWarning("lost-node")
"""The cost of our podFailurePolicy. The author of the Job is warned of it."""


def job_warnings(tree: Tree, row: KindRow, *, adds: bool) -> tuple[AdmissionWarning, ...]:
    """Return warnings on the Jobs of a workload; none if their shape is wrong, because the API server says so.

    `adds`: the policy lets us add a podFailurePolicy. A Job that gets one needs no warning about failures. The cost is
    reported to the author of the workload that makes the Job, or to the Job's author when the Job is patched. Replicas
    whose failed pods the training operator does not make again have a warning too.
    """
    try:
        warnings: list[AdmissionWarning] = []
        for job in _jobs(tree, row):
            if not (adds and _is_free(job.spec, tree)):
                warnings += _said(job, adds=adds)
            elif row.group_kind != JOB:
                warnings.append(LOST_NODE)
    except Refused:
        return ()
    retries = row.retries
    if retries is not None and tree.get("apiVersion") != "kubeflow.org/v2beta1":  # its launcher is a Job
        for path, found in all_at(tree, retries.replicas):
            policy = mapped(found).get("restartPolicy") or retries.default
            if isinstance(policy, str) and policy not in retries.by:
                warnings.append(AdmissionWarning("replicas-never", replica=path[-1], policy=policy, kind=row.kind))
    return tuple(dict.fromkeys(warnings))


def _jobs(tree: Tree, row: KindRow) -> Iterator[JobSeen]:
    spec, place = tree.get("spec") or {}, "spec"
    match row.group_kind:
        case ("batch", "Job"):
            yield JobSeen(path="spec", spec=view(spec, JobSpec))
        case ("batch", "CronJob"):
            yield JobSeen(path="spec.jobTemplate.spec", spec=view(spec, _Holder).job_template.spec)
        case ("jobset.x-k8s.io", "JobSet") | ("trainer.kubeflow.org", "TrainJob"):
            if row.kind == "TrainJob":
                spec, place = mapped(at(tree, "runtime.spec.template.spec")), "runtime"
            holder = view(spec, _Holder)
            for index, each in enumerate(holder.replicated_jobs):
                path = f"{place}.replicatedJobs[{index}].template.spec"
                yield JobSeen(path=path, spec=each.template.spec, name=each.name, restarts=holder.failure_policy)


_REASONS = {"FailJob": "PodFailurePolicy", "FailIndex": "FailedIndexes"}
"""The reason in a Job's condition Failed, by the action of the rule."""
_LIMITS = {"backoffLimit": "BackoffLimitExceeded", "backoffLimitPerIndex": "FailedIndexes"}
"""The reason in a Job's condition Failed, by the limit that is exceeded."""


def _said(job: JobSeen, *, adds: bool) -> Iterator[AdmissionWarning]:
    # 1. Find the rule that decides on a preempted pod whose program ended with 143. A rule that ignores this code does
    #    not decide, because a program may end with another one.
    rules, (field, limit) = job.spec.rules, job.spec.limit
    deciding = (
        (index, each)
        for index, each in enumerate(rules)
        if each.on_preemption or (each.on_sigterm and each.action != "Ignore")
    )
    index, rule = next(deciding, (0, FailureRule(action="Count")))
    wished = next((each.action for each in rules if each.on_preemption), "")
    if rule.action == "Ignore":
        return
    before_wished = AdmissionWarning("job-exit-code", path=f"{job.path}.podFailurePolicy.rules[{index}]")

    # 2. If the pod counts, say so unless Job and JobSet together survive enough preemptions.
    if rule.action == "Count":
        _, restarts = job.after(_LIMITS[field])
        if (limit + 1) * (restarts + 1) > ENOUGH:
            return
        # A runtime whose pods would restart Never would get our policy. The API server accepts none with another one.
        policy, of_runtime = job.spec.template.spec.restart_policy, job.path.startswith("runtime")
        way = Phrase("never-restart") if policy == "OnFailure" else Phrase("ignore-disruption")
        if wished not in ("", "Count"):
            yield before_wished
        elif adds and of_runtime and policy != "Never" and job.spec.pod_failure_policy is None:
            yield AdmissionWarning("runtime-backoff", limit=limit)
        else:
            field = f"the runtime's {field}" if of_runtime else field
            yield AdmissionWarning("job-backoff", field=field, limit=limit, way=way)
        return

    # 3. The author's rule on DisruptionTarget makes the Job fail. Only a JobSet may count that against a limit.
    action, restarts = job.after(_REASONS.get(rule.action, ""))
    if rule.action == wished:
        if action.startswith("Restart") and restarts < ENOUGH:
            yield AdmissionWarning("restarts-counted", most=restarts)
        return

    # 4. Another rule comes first, and fails the Job for good.
    if restarts < ENOUGH:
        yield before_wished
