"""Jobs that preemption would fail for good."""

from typing import Any

import pytest

from tests.builders.words import words
from webhook.objects.group_kind import GroupKind
from webhook.policy.checkpoint.job_failures import REPLICAS, fields_due, job_warnings

JOB, CRON_JOB, JOB_SET = (
    GroupKind("batch", "Job"),
    GroupKind("batch", "CronJob"),
    GroupKind("jobset.x-k8s.io", "JobSet"),
)
TRAIN_JOB = GroupKind("trainer.kubeflow.org", "TrainJob")
IGNORE = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
COUNT = {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
BACKOFF = "[job-backoff] preemptions count against backoffLimit {}; let podFailurePolicy ignore DisruptionTarget"
EXIT_CODE = "[job-exit-code] {}.podFailurePolicy.rules[0] acts on exit code 143 before DisruptionTarget is ignored"


def on_codes(operator: str, *values: int, action: str = "FailJob") -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values)}}


def a_spec(*rules: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(rules)}, **fields}


SAID: dict[str, tuple[dict[str, Any], list[str]]] = {
    "the default backoffLimit": ({}, [BACKOFF.format(6)]),
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
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_a_job(name: str) -> None:
    spec, sentences = SAID[name]
    assert [*words(job_warnings({"spec": spec}, JOB, adds=False))] == sentences


def test_a_cron_job_s_jobs() -> None:
    spec = a_spec(on_codes("In", 143), IGNORE)
    found = job_warnings({"spec": {"jobTemplate": {"spec": spec}}}, CRON_JOB, adds=False)
    assert [*words(found)] == [EXIT_CODE.format("spec.jobTemplate.spec")]


def test_a_job_set_s_jobs_are_told_of_once() -> None:
    jobs = [{"name": name, "template": {"spec": {"backoffLimit": 0}}} for name in ("driver", "workers")]
    assert [*words(job_warnings({"spec": {"replicatedJobs": jobs}}, JOB_SET, adds=False))] == [BACKOFF.format(0)]


@pytest.mark.parametrize("spec", [None, [], "x", {"podFailurePolicy": []}, {"backoffLimit": "6"}])
def test_what_the_api_server_refuses_anyway_is_not_told_of(spec: object) -> None:
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


def test_the_jobs_of_a_jobset_get_theirs_when_they_are_made() -> None:
    assert job_warnings({"spec": {"replicatedJobs": [{"template": {"spec": NEVER}}]}}, JOB_SET, adds=True) == ()


RUNTIME_BACKOFF = (
    "[runtime-backoff] preemptions count against the runtime's backoffLimit {}: let its pods restart Never"
)
RUNTIMES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "the runtime that Trainer ships: JobSet lets its pods restart in place": (
        {"template": {"spec": {}}},
        [RUNTIME_BACKOFF.format(6)],
    ),
    "a runtime whose Job gets a policy of ours when JobSet makes it": (NEVER, []),
    "a runtime with a policy of its own": (NEVER | a_spec(IGNORE), []),
    "a runtime that fails at 143": (
        NEVER | a_spec(on_codes("In", 143)),
        [
            EXIT_CODE.partition("{}")[0]
            + "runtime.replicatedJobs[0].template.spec.podFai… acts on exit code 143 before DisruptionTarget is ignored"
        ],
    ),
}


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_trainjob_s_jobs_are_those_of_its_runtime(name: str) -> None:
    spec, sentences = RUNTIMES[name]
    jobs = {"replicatedJobs": [{"name": "node", "template": {"spec": spec}}]}
    tree = {"spec": {}, "runtime": {"spec": {"template": {"spec": jobs}}}}
    assert [*words(job_warnings(tree, TRAIN_JOB, adds=True))] == sentences


def test_of_a_trainjob_whose_runtime_was_not_read_nothing_is_told() -> None:
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


@pytest.mark.parametrize("kind", REPLICAS, ids=str)
@pytest.mark.parametrize("policy", ["", "Never", "OnFailure", "Always", "ExitCode"])
def test_a_training_operator_s_job_that_is_never_tried_again(kind: GroupKind, policy: str) -> None:
    _, field, _ = REPLICAS[kind][0].split(".")
    replicas = {"Worker": {"restartPolicy": policy} if policy else {}}
    tree = {"apiVersion": "kubeflow.org/v1", "spec": {field: replicas}}
    told = f"Worker has restartPolicy {policy or 'Never'}: one preemption fails the {kind}; ExitCode tries 143 again"
    wanted = [f"[replicas-never] {told}"] if policy in FAILS[kind.kind] else []
    assert [*words(job_warnings(tree, kind, adds=True))] == wanted


def test_the_mpi_operator_makes_evicted_workers_again() -> None:
    tree = {"apiVersion": "kubeflow.org/v2beta1", "spec": {"mpiReplicaSpecs": {"Worker": {"restartPolicy": "Never"}}}}
    assert job_warnings(tree, GroupKind("kubeflow.org", "MPIJob"), adds=True) == ()


def test_a_pod_of_more_containers_than_there_may_be_rules_gets_none() -> None:
    assert fields_due({"spec": NEVER}, [f"rank-{number}" for number in range(20)]) == {}
