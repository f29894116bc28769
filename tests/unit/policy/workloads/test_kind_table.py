"""The table of kinds as a whole."""

from webhook.policy.workloads.kinds import BUILT_IN


def test_gang_labels_are_those_of_kinds_whose_members_may_hold_no_gpu() -> None:
    """The chart's matchConditions list the same. With a Job's among them, a dead webhook would stop all Jobs."""
    assert sorted(BUILT_IN.gang_labels) == [
        "dask.org/cluster-name",
        "elasticjob.dlrover/name",
        "grove.io/podgang",
        "jobset.sigs.k8s.io/jobset-name",
        "leaderworkerset.sigs.k8s.io/name",
        "ray.io/cluster",
        "ray.io/originated-from-cr-name",
        "training.kubeflow.org/job-name",
        "volcano.sh/job-name",
    ]
