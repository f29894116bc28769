"""Judges what two streams of creates came to while the webhook went away."""

from collections.abc import Collection

from localcluster.node import NodeCluster

from .creates import Creates, accepted, refused

TIER = "gpu-tiers.dev/tier"


def only_gpu_pods_noticed(node: NodeCluster, creates: Creates, sentences: Collection[str]) -> None:
    """Check that stored GPU pods bear a tier, the others nothing of ours; each refusal is one of the sentences."""
    stored = {pod["metadata"]["name"]: pod for pod in creates.stored}
    assert set(stored) == {*accepted(creates.gpu), *accepted(creates.other)}

    found = node.api.get("priorityclasses")["items"]
    classes = {each["metadata"]["name"]: each["value"] for each in found}
    for pod in (stored[name] for name in accepted(creates.gpu)):
        tier = pod["metadata"]["labels"][TIER]
        assert (pod["spec"]["priorityClassName"], pod["spec"]["priority"]) == (tier, classes[tier])
    for answer in refused(creates.gpu):
        assert any(sentence in answer.message for sentence in sentences), answer

    assert not refused(creates.other)
    for pod in (stored[name] for name in accepted(creates.other)):
        assert not pod["metadata"].keys() & {"labels", "annotations"}
        assert pod["spec"]["priority"] == 0
