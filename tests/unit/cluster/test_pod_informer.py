"""The time for which a pod that is being deleted counts."""

import msgspec

from webhook.cluster.pod_informer import SeenPod, seen_pod


def seen(**metadata: object) -> SeenPod:
    pod = {"metadata": {"name": "train-0", "uid": "1", **metadata}, "spec": {"containers": [{"name": "train"}]}}
    return seen_pod(msgspec.json.encode(pod))


def test_a_running_pod_counts_for_ever():
    pod = seen(namespace="team-a")
    assert (pod.metadata.namespace, pod.spec.containers[0].name, pod.ends_in) == ("team-a", "train", None)


def test_a_pod_in_deletion_counts_for_one_grace_more_than_it_has():
    pod = seen(deletionTimestamp="2026-11-21T12:02:00Z", deletionGracePeriodSeconds=120)
    assert pod.ends_in == 2 * 120


def test_a_pod_tells_the_claims_that_were_made_for_it():
    statuses = [{"name": "gpu", "resourceClaimName": "train-0-gpu-x7k2p"}, {"name": "none", "resourceClaimName": None}]
    pod = {"metadata": {"uid": "1"}, "status": {"resourceClaimStatuses": statuses}}
    assert seen_pod(msgspec.json.encode(pod)).made == {"gpu": "train-0-gpu-x7k2p"}
