"""A tier label counts wherever an operator passes it on, from the workload down to its pods; the nearest decides."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.builders import Tree, a_policy
from tests.builders.words import sentence
from tests.workloads.golden.files import FOLDER
from webhook.cli.manifests.documents import Document, documents
from webhook.cli.manifests.finding import Finding
from webhook.cli.manifests.inputs import cluster_of
from webhook.cli.manifests.judge import judge_at
from webhook.objects.view import steps, with_at
from webhook.policy.workloads.kind_table import BUILT_IN, KindRow
from webhook.policy.workloads.templates import own_templates

LABEL = "gpu-tiers.dev/tier"
TIERS = ("gpu-serving", "gpu-batch", "gpu-interactive", "gpu-training")
ROWS = [row for row in BUILT_IN.rows if any(each.between for each in row.templates)]


def given(row: KindRow) -> tuple[Document, list[Document]]:
    """The golden manifest of a kind, without a class for all of its pods, and all that stands beside it."""
    found = list(documents(str(FOLDER / "kinds" / f"{row.group or 'core'}_{row.kind}.yaml")))
    own = next(each for each in found if each.group_kind == row.group_kind)
    bare = replace(own, tree=with_at(own.tree, row.class_field, None)) if row.class_field else own
    return bare, [bare if each is own else each for each in found]


def labelled(tree: Tree, place: str, tier: str) -> Tree:
    """A copy with the label in the metadata at a place."""
    key, *rest = steps(place) or [""]
    if not key:
        return {**tree, "labels": {**(tree.get("labels") or {}), LABEL: tier}}
    if isinstance(tree, list):
        return [labelled(each, ".".join(rest), tier) if str(at) == key else each for at, each in enumerate(tree)]  # type: ignore[return-value]
    return {**tree, key: labelled(tree.get(key) or {}, ".".join(rest), tier)}


def ways(row: KindRow) -> Iterator[tuple[str, list[str]]]:
    """Yield each template of the manifest, and the places on the way to it, the nearest first."""
    tree = given(row)[0].tree
    for each in own_templates(tree, row):
        places = [passed.place.partition(".")[2] for passed in each.passed]
        yield each.path, [place for place in places if not place.startswith("runtime.")]


async def judged(document: Document, tree: Tree, others: list[Document]) -> Finding:
    changed = replace(document, tree=tree)
    world = [changed if each is document else each for each in others]
    return await judge_at(cluster_of(a_policy(), world), a_policy()).finding(changed)


CASES = [(row, path, places) for row in ROWS for path, places in ways(row) if places]


@pytest.mark.parametrize(
    ("row", "path", "places"), CASES, ids=[f"{row.group}/{row.kind}:{path}" for row, path, _ in CASES]
)
async def test_the_nearest_label_on_the_way_decides_for_the_workload_and_its_pods(
    row: KindRow, path: str, places: list[str]
) -> None:
    document, others = given(row)
    tree = labelled(document.tree, "metadata", "gpu-training")
    for place, tier in zip(reversed(places), TIERS, strict=False):
        tree = labelled(tree, place, tier)
        found = await judged(document, tree, others)
        pods = {pod.path: pod.verdict.assignment for pod in found.pods if pod.verdict.ours}
        if path not in pods:
            pytest.skip("its pods ask for no GPU")
        assignment = pods[path]
        assert assignment is not None
        assert assignment.tier is not None
        assert (assignment.step, assignment.tier.name) == ("label", tier), place


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.group}/{row.kind}" for row in ROWS])
async def test_a_label_that_names_no_tier_is_refused_where_it_stands(row: KindRow) -> None:
    document, others = given(row)
    ways_of_it = [places for _, places in ways(row) if places]
    if not ways_of_it:
        pytest.skip("what lies between stands in another object")
    tree = document.tree
    for places in ways_of_it:
        tree = labelled(tree, places[0], "gpu-trainig")
    found = await judged(document, tree, others)
    assert found.verdict.refusal is not None
    field = f"{row.kind}/{document.name}.{ways_of_it[0][0]}.labels[{LABEL}]"
    assert sentence(found.verdict.refusal).startswith(f'{field}: unknown tier "gpu-trainig"')


def test_every_kind_whose_template_makes_another_workload_is_among_them() -> None:
    """A kind that embeds a whole metadata beside a spec passes it on."""
    assert {row.kind for row in ROWS} >= {"CronJob", "JobSet", "CronWorkflow", "Workflow", "TrainJob", "PipelineRun"}
