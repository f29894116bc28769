"""Jobs that preemption would fail for good."""

from typing import Any

import pytest

from tests.builders.words import words
from webhook.objects.group_kind import GroupKind
from webhook.objects.refusal import AdmissionWarning
from webhook.policy.checkpoint import job_failures
from webhook.policy.checkpoint.job_failures import fields_due
from webhook.policy.workloads.kind_table import BUILT_IN

JOB, CRON_JOB, JOB_SET = (
    GroupKind("batch", "Job"),
    GroupKind("batch", "CronJob"),
    GroupKind("jobset.x-k8s.io", "JobSet"),
)
TRAIN_JOB = GroupKind("trainer.kubeflow.org", "TrainJob")
IGNORE = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
COUNT = {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
FAIL = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
FAIL_INDEX = {"action": "FailIndex", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
BACKOFF = "[job-backoff] preemptions count against backoffLimit {}; let podFailurePolicy ignore DisruptionTarget"
EXIT_CODE = "[job-exit-code] {}.podFailurePolicy.rules[0] acts on exit code 143 before a rule on DisruptionTarget"


def on_codes(operator: str, *values: int, action: str = "FailJob") -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values)}}


def a_spec(*rules: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(rules)}, **fields}


SAID: dict[str, tuple[dict[str, Any], list[str]]] = {
    "the default backoffLimit": ({}, [BACKOFF.format(6)]),
    "pods that restart in place, which have no podFailurePolicy": (
        {"template": {"spec": {"restartPolicy": "OnFailure"}}},
        [BACKOFF.format(6).partition("; ")[0] + "; set restartPolicy Never, ignore DisruptionTarget"],
    ),
    "no retry at all": ({"backoffLimit": 0}, [BACKOFF.format(0)]),
    "a backoffLimit that somebody counted on": ({"backoffLimit": 20}, []),
    "a policy that ignores preemption": (a_spec(IGNORE), []),
    "a policy about exit codes alone": (a_spec(on_codes("In", 42)), [BACKOFF.format(6)]),
    "a policy that counts preemption": (a_spec(COUNT, IGNORE), [BACKOFF.format(6)]),
    "a condition that must not be": (
        a_spec({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "False"}]}),
        [BACKOFF.format(6)],
    ),
    "143 fails the Job first": (a_spec(on_codes("In", 137, 143), IGNORE), [EXIT_CODE.format("spec")]),
    "all but 0 fails the Job first": (a_spec(on_codes("NotIn", 0), IGNORE), [EXIT_CODE.format("spec")]),
    "143 is counted first": (a_spec(on_codes("In", 143, action="Count"), IGNORE), [EXIT_CODE.format("spec")]),
    "143 is ignored first": (a_spec(on_codes("In", 143, action="Ignore"), IGNORE), []),
    "another code fails the Job first": (a_spec(on_codes("In", 42), IGNORE), []),
    "all but 143 fails the Job first": (a_spec(on_codes("NotIn", 143), IGNORE), []),
    "143 fails the Job after": (a_spec(IGNORE, on_codes("In", 143)), []),
    "the author lets a preemption fail the Job": (a_spec(FAIL), []),
    "and so does 143 before": (a_spec(on_codes("NotIn", 0), FAIL), []),
    "143 is counted first, so no preemption fails it": (
        a_spec(on_codes("In", 143, action="Count"), FAIL),
        [EXIT_CODE.format("spec")],
    ),
    "143 is counted first, with a limit that lasts": (
        a_spec(on_codes("In", 143, action="Count"), FAIL, backoffLimit=20),
        [],
    ),
    "143 fails the Job, and nothing else is said": (a_spec(on_codes("In", 143)), [EXIT_CODE.format("spec")]),
    "143 is ignored, another code is not": (a_spec(on_codes("In", 143, action="Ignore")), [BACKOFF.format(6)]),
    "the author lets a preemption fail its index": (a_spec(FAIL_INDEX, backoffLimitPerIndex=1), []),
    "143 fails the index first": (
        a_spec(on_codes("In", 143, action="FailIndex"), IGNORE, backoffLimitPerIndex=1),
        [EXIT_CODE.format("spec")],
    ),
    "a limit for each index": ({"backoffLimitPerIndex": 3}, [BACKOFF.replace("Limit ", "LimitPerIndex ").format(3)]),
    "a limit for each index that lasts": ({"backoffLimitPerIndex": 30}, []),
    "a limit for each index, and a lower one for all": (
        {"backoffLimitPerIndex": 30, "backoffLimit": 2},
        [BACKOFF.format(2)],
    ),
    "as the API server fills it in beside a limit for each index": (
        {"backoffLimitPerIndex": 3, "backoffLimit": 2147483647},
        [BACKOFF.replace("Limit ", "LimitPerIndex ").format(3)],
    ),
}


def job_warnings(tree: dict[str, Any], kind: GroupKind, *, adds: bool) -> tuple[AdmissionWarning, ...]:
    return job_failures.job_warnings(tree, BUILT_IN.by_kind[kind], adds=adds)


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_a_job(name: str) -> None:
    spec, sentences = SAID[name]
    assert [*words(job_warnings({"spec": spec}, JOB, adds=False))] == sentences


def test_a_cron_job_s_jobs() -> None:
    spec = a_spec(on_codes("In", 143), IGNORE)
    found = job_warnings({"spec": {"jobTemplate": {"spec": spec}}}, CRON_JOB, adds=False)
    assert [*words(found)] == [EXIT_CODE.format("spec.jobTemplate.spec")]


def test_a_job_set_s_jobs_are_reported_once() -> None:
    jobs = [{"name": name, "template": {"spec": {"backoffLimit": 0}}} for name in ("driver", "workers")]
    assert [*words(job_warnings({"spec": {"replicatedJobs": jobs}}, JOB_SET, adds=False))] == [BACKOFF.format(0)]


def restarting(most: int, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"failurePolicy": {"maxRestarts": most, "rules": list(rules)}}


def for_reason(action: str, *reasons: str, **fields: object) -> dict[str, Any]:
    return {"action": action, "onJobFailureReasons": list(reasons), **fields}


COUNTED = "[restarts-counted] a preemption takes one of maxRestarts {}; RestartJobSetAndIgnoreMaxRestarts takes none"
WITHOUT_END = "RestartJobSetAndIgnoreMaxRestarts"
ON_RULE, ON_LIMIT = for_reason(WITHOUT_END, "PodFailurePolicy"), for_reason(WITHOUT_END, "BackoffLimitExceeded")
JOB_SETS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "JobSet's own example: a preemption restarts it and counts for nothing": (
        restarting(3, ON_RULE),
        a_spec(FAIL, backoffLimit=0),
        [],
    ),
    "the same, where all codes but 0 come first": (restarting(3, ON_RULE), a_spec(on_codes("NotIn", 0), FAIL), []),
    "a code comes first, and another rule of the JobSet": (
        restarting(3, ON_LIMIT),
        a_spec(on_codes("NotIn", 0), IGNORE),
        [EXIT_CODE.replace("{}.podFailurePolicy.rules[0]", "spec.replicatedJobs[0].template.spec.podFailure…")],
    ),
    "each preemption takes a restart": (restarting(3), a_spec(FAIL), [COUNTED.format(3)]),
    "no restart is left": (restarting(0), a_spec(FAIL), [COUNTED.format(0)]),
    "so many restarts that nobody notices": (restarting(20), a_spec(FAIL), []),
    "the author lets it end": (restarting(3, for_reason("FailJobSet")), a_spec(FAIL), []),
    "the rule is of another job": (
        restarting(3, {**ON_RULE, "targetReplicatedJobs": ["driver"]}),
        a_spec(FAIL),
        [COUNTED.format(3)],
    ),
    "the first rule decides": (restarting(3, for_reason("RestartJob"), ON_RULE), a_spec(FAIL), [COUNTED.format(3)]),
    "a rule that may match": (restarting(3, {**ON_RULE, "onJobFailureMessagePatterns": ["x"]}), a_spec(FAIL), []),
    "a rule that may fail it": (
        restarting(3, {**for_reason("FailJobSet"), "onJobFailureMessagePatterns": ["x"]}, ON_RULE),
        a_spec(FAIL),
        [],
    ),
    "the Job's limit is exceeded, and that counts for nothing": (restarting(3, ON_LIMIT), {"backoffLimit": 0}, []),
    "the Job's limit and the restarts are enough together": (restarting(6), {"backoffLimit": 2}, []),
    "the Job's limit and the restarts are few": (restarting(3), {"backoffLimit": 2}, [BACKOFF.format(2)]),
}


@pytest.mark.parametrize("name", JOB_SETS)
def test_what_a_job_set_makes_of_a_job_that_fails(name: str) -> None:
    policy, spec, sentences = JOB_SETS[name]
    tree = {"spec": {**policy, "replicatedJobs": [{"name": "workers", "template": {"spec": spec}}]}}
    assert [*words(job_warnings(tree, JOB_SET, adds=False))] == sentences


@pytest.mark.parametrize("spec", [None, [], "x", {"podFailurePolicy": []}, {"backoffLimit": "6"}])
def test_what_the_api_server_refuses_anyway_is_not_reported(spec: object) -> None:
    assert len(job_warnings({"spec": spec}, JOB, adds=False)) <= 1


def test_other_kinds_fail_in_their_own_way() -> None:
    assert job_warnings({"spec": {}}, GroupKind("batch.volcano.sh", "Job"), adds=False) == ()


IGNORES = {
    "rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "Ignore", "onExitCodes": {"containerName": "train", "operator": "In", "values": [143]}},
    ]
}
NEVER: dict[str, Any] = {"template": {"spec": {"restartPolicy": "Never"}}}
DEFAULTED = NEVER | {"podReplacementPolicy": "TerminatingOrFailed"}
APPLIED = {
    "kubectl.kubernetes.io/last-applied-configuration": '{"spec":{"podReplacementPolicy":"TerminatingOrFailed"}}'
}
BY_SERVER = [
    {"operation": "Update", "fieldsV1": {"f:spec": {"f:podReplacementPolicy": {}}}},
    {"operation": "Apply", "fieldsV1": {"f:spec": {"f:podReplacementPolicy": {}}}},
]
DUE: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "a Job that fails its pods": (NEVER, {}, True),
    "as the API server fills it in": (DEFAULTED, {}, True),
    "created, so that its fields count as written": (DEFAULTED, {"managedFields": BY_SERVER[:1]}, True),
    "who applies it chose another replacement": (DEFAULTED, {"annotations": APPLIED}, False),
    "and by server-side apply": (DEFAULTED, {"managedFields": BY_SERVER}, False),
    "one that restarts in place": ({"template": {"spec": {"restartPolicy": "OnFailure"}}}, {}, False),
    "one with a policy of its own": (NEVER | a_spec(COUNT), {}, False),
    "one whose policy has no rules": (NEVER | a_spec(), {}, False),
    "no Job's shape": ({"template": 7}, {}, False),
}


@pytest.mark.parametrize("name", DUE)
def test_which_job_gets_a_policy_by_which_preemptions_do_not_count(name: str) -> None:
    spec, metadata, due = DUE[name]
    tree = {"metadata": metadata, "spec": spec}
    assert fields_due(tree, ["train"]) == (
        {"podFailurePolicy": IGNORES, "podReplacementPolicy": "Failed"} if due else {}
    )
    if due:
        assert job_warnings(tree, JOB, adds=True) == ()
        assert [*words(job_warnings(tree, JOB, adds=False))] == [BACKOFF.format(6)]


WHEN = "when you delete the node or taint it out-of-service"
PRICE = f"[lost-node] added podFailurePolicy: pods of a dead node are replaced {WHEN}"


def test_the_jobs_of_a_jobset_get_theirs_when_they_are_made_and_their_author_reads_the_price_once() -> None:
    jobs = {"spec": {"replicatedJobs": [{"template": {"spec": NEVER}}, {"template": {"spec": NEVER}}]}}
    assert [*words(job_warnings(jobs, JOB_SET, adds=True))] == [PRICE]


RUNTIME_BACKOFF = (
    "[runtime-backoff] preemptions count against the runtime's backoffLimit {}: let its pods restart Never"
)
RUNTIMES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "the runtime that Trainer ships: JobSet lets its pods restart in place": (
        {"template": {"spec": {}}},
        [RUNTIME_BACKOFF.format(6)],
    ),
    "a runtime whose Job gets a policy of ours when JobSet makes it": (NEVER, [PRICE]),
    "a runtime whose pods restart Never, with a policy that counts": (
        NEVER | a_spec(COUNT),
        [BACKOFF.format(6).replace("against ", "against the runtime's ")],
    ),
    "a runtime with a policy of its own": (NEVER | a_spec(IGNORE), []),
    "a runtime that fails at 143": (
        NEVER | a_spec(on_codes("In", 143)),
        [
            EXIT_CODE.partition("{}")[0]
            + "runtime.replicatedJobs[0].template.spec.podFail… acts on exit code 143 before a rule on DisruptionTarget"
        ],
    ),
}


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_trainjob_s_jobs_are_those_of_its_runtime(name: str) -> None:
    spec, sentences = RUNTIMES[name]
    jobs = {"replicatedJobs": [{"name": "node", "template": {"spec": spec}}]}
    tree = {"spec": {}, "runtime": {"spec": {"template": {"spec": jobs}}}}
    assert [*words(job_warnings(tree, TRAIN_JOB, adds=True))] == sentences


def test_of_a_trainjob_whose_runtime_was_not_read_nothing_is_reported() -> None:
    assert job_warnings({"spec": {}}, TRAIN_JOB, adds=True) == ()


FAILS = {
    "PyTorchJob": ("Never",),
    "TFJob": ("", "Never"),
    "XGBoostJob": ("", "Never", "OnFailure", "Always"),
    "PaddleJob": ("Never",),
    "JAXJob": ("", "Never"),
    "MPIJob": ("", "Never", "OnFailure", "Always"),
}
"""The restartPolicies with which one preempted pod fails a training operator's job; "" where none stands."""


@pytest.mark.parametrize("kind", [row.group_kind for row in BUILT_IN.rows if row.retries], ids=str)
@pytest.mark.parametrize("policy", ["", "Never", "OnFailure", "Always", "ExitCode"])
def test_a_training_operator_s_job_that_is_never_tried_again(kind: GroupKind, policy: str) -> None:
    retries = BUILT_IN.by_kind[kind].retries
    assert retries
    _, field, _ = retries.replicas.split(".")
    replicas = {"Worker": {"restartPolicy": policy} if policy else {}}
    tree = {"apiVersion": "kubeflow.org/v1", "spec": {field: replicas}}
    sentence = (
        f"Worker has restartPolicy {policy or 'Never'}: one preemption fails the {kind}; ExitCode retries exit code 143"
    )
    wanted = [f"[replicas-never] {sentence}"] if policy in FAILS[kind.kind] else []
    assert [*words(job_warnings(tree, kind, adds=True))] == wanted


def test_the_mpi_operator_makes_evicted_workers_again() -> None:
    tree = {"apiVersion": "kubeflow.org/v2beta1", "spec": {"mpiReplicaSpecs": {"Worker": {"restartPolicy": "Never"}}}}
    assert job_warnings(tree, GroupKind("kubeflow.org", "MPIJob"), adds=True) == ()


def test_a_pod_of_more_containers_than_there_may_be_rules_gets_none() -> None:
    assert fields_due({"spec": NEVER}, [f"rank-{number}" for number in range(20)]) == {}
