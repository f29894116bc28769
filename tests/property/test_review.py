"""`gpu-tiers review` for every object: a finding or bad input, also where nobody knows its kind."""

import asyncio
import contextlib

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import Tree, a_policy
from tests.property.anything import SHAPES, spoiled, trees
from tests.property.test_admission import hostile
from webhook.cli.manifests.documents import BadInput, Document
from webhook.cli.manifests.inputs import cluster_of
from webhook.cli.manifests.judge import judge_at

POLICY = a_policy()


@hostile
@given(
    inside=trees | st.sampled_from(SHAPES).flatmap(spoiled),
    field=st.sampled_from(["template", "components", "podSpec", "replicas"]),
)
def test_any_object_of_an_unknown_kind_is_found_out_or_bad_input(inside: Tree, field: str) -> None:
    metadata = {"name": "x"}
    tree = {"apiVersion": "example.com/v1", "kind": "Any", "metadata": metadata, "spec": {field: inside}}
    document = Document("any.yaml", tree)
    with contextlib.suppress(BadInput):
        found = asyncio.run(judge_at(cluster_of(POLICY, [document]), POLICY).finding(document))
        assert not found.known
