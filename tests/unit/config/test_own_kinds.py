"""Kinds that a platform team adds in its policy file: what they make of a workload, and what is said of mistakes."""

from typing import Any

import pytest

from tests.builders import GPU, a_job, a_pod, a_workload, policy_file
from webhook.config.errors import ConfigError
from webhook.config.load import parse
from webhook.objects.group_kind import GroupKind
from webhook.policy.classification.classify import classify
from webhook.policy.workloads.kind_table import BUILT_IN, KindRow
from webhook.policy.workloads.templates import workload
from webhook.policy.workloads.workload import Workload

POD = {"spec": {"containers": [{"name": "main", "image": "acme/run:1", "resources": {"limits": {GPU: 2}}}]}}
TREE = a_workload(
    "ml.example.com/v1",
    "Experiment",
    driver={"template": POD},
    workers=[{"template": POD, "count": 3}, {"template": POD}],
).json()
EXPERIMENT = {"group": "ml.example.com", "kind": "Experiment", "plural": "experiments"}
WORKERS = {"path": "spec.workers.*.template", "replicas": "spec.workers.*.count"}


def row(**fields: Any) -> KindRow:
    (own,) = parse(policy_file(kinds=[EXPERIMENT | fields])).kinds.rows[len(BUILT_IN.rows) :]
    return own


def experiment(**fields: Any) -> Workload:
    return workload(TREE, row(**fields))


def test_its_pods_are_counted_where_the_policy_says_they_stand() -> None:
    found = experiment(templates=[{"path": "spec.driver.template"}, WORKERS])
    assert [(member.path, member.count) for member in found.members] == [
        ("spec.driver.template", 1),
        ("spec.workers.0.template", 3),
        ("spec.workers.1.template", 1),
    ]


PLACES = {
    "a number beside the template's parent": ({"path": "spec.a.template", "replicas": "spec.size"}, {"size": 4}, 4),
    "a number far from the template": ({"path": "spec.a.template", "replicas": "status.want"}, {}, 1),
    "a bare spec": ({"path": "spec.bare", "form": "spec"}, {"bare": POD["spec"]}, 1),
    "a list of templates": ({"path": "spec.all.*"}, {"all": [POD]}, 1),
}


@pytest.mark.parametrize(("place", "spec", "count"), PLACES.values(), ids=PLACES)
def test_a_template_and_its_number_may_stand_anywhere(place: dict[str, str], spec: dict[str, Any], count: int) -> None:
    tree = {"metadata": {"name": "x"}, "spec": {"a": {"template": POD}, **spec}}
    (member,) = workload(tree, row(templates=[place])).members
    assert member.count == count
    assert member.template.spec.containers[0].image == "acme/run:1"


def test_what_the_policy_says_it_is_is_proof() -> None:
    found = classify(a_pod().asking().view(), (experiment(type="training"),), BUILT_IN)
    assert str(found) == "training, by its kind, Experiment/work"


def test_what_it_mostly_is_gives_way_to_what_its_pods_run() -> None:
    owner = experiment(usualType="training")
    assert str(classify(a_pod().asking().view(), (owner,), BUILT_IN)) == (
        "training, by the usual use of its kind, Experiment/work"
    )
    serving = a_pod().running("vllm", "serve", "m", image="acme/run:1").asking().view()
    assert str(classify(serving, (owner,), BUILT_IN)).startswith("serving, a guess from its command")


def test_its_label_tells_without_a_look_at_the_owner() -> None:
    kinds = parse(policy_file(kinds=[EXPERIMENT | {"type": "batch", "podLabels": {"ml.example.com/run": None}}])).kinds
    pod = a_pod().asking().labelled({"ml.example.com/run": "7"}).view()
    assert str(classify(pod, (), kinds)) == "batch, by its label ml.example.com/run"
    assert classify(pod, (), BUILT_IN) is None


def test_a_gang_s_label_marks_members_that_ask_for_no_gpu() -> None:
    kinds = parse(policy_file(kinds=[EXPERIMENT | {"gangLabel": "ml.example.com/run"}])).kinds
    assert kinds.gang_labels == BUILT_IN.gang_labels | {"ml.example.com/run"}


def test_its_scale_is_reviewed_where_the_field_is_named() -> None:
    kinds = parse(policy_file(kinds=[EXPERIMENT | {"scale": "spec.workers"}])).kinds
    assert kinds.by_scaled["ml.example.com", "experiments"].scale == "spec.workers"
    assert ("ml.example.com", "experiments") not in parse(policy_file(kinds=[EXPERIMENT])).kinds.by_scaled
    with pytest.raises(ConfigError, match=r"kinds\[0\].scale"):
        parse(policy_file(kinds=[EXPERIMENT | {"scale": ".spec.workers"}]))


def test_a_kind_of_the_table_is_known_better_here() -> None:
    kind = GroupKind("batch", "Job")
    ours = parse(policy_file(kinds=[{"group": "batch", "kind": "Job", "type": "training"}])).kinds.by_kind[kind]
    known = BUILT_IN.by_kind[kind]
    assert (ours.type, ours.plural, ours.templates) == ("training", "jobs", known.templates)
    owner = workload(a_job(name="night").json(), ours)
    assert str(classify(a_pod().asking().view(), (owner,), BUILT_IN)) == "training, by its kind, Job/night"


def in_a_wrapper(tree: dict[str, Any], kind: dict[str, Any]) -> Workload:
    row = parse(policy_file(kinds=[kind])).kinds.by_kind[GroupKind("workload.codeflare.dev", "AppWrapper")]
    wrapper = a_workload("workload.codeflare.dev/v1beta2", "AppWrapper", components=[{"template": tree}])
    return workload(wrapper.json(), row)


def test_it_is_known_inside_an_appwrapper() -> None:
    """A kind that the policy adds, and one of the table that it changes."""
    added = in_a_wrapper(TREE, EXPERIMENT | {"type": "training", "templates": [WORKERS]})
    assert [(member.path, member.count) for member in added.members] == [
        ("spec.components.0.template.spec.workers.0.template", 3),
        ("spec.components.0.template.spec.workers.1.template", 1),
    ]
    (changed,) = in_a_wrapper(a_job(name="night").json(), {"group": "batch", "kind": "Job", "type": "training"}).members
    assert [each.row.type for each in changed.makers] == ["training"]


def test_a_rule_may_name_it() -> None:
    rule = {"match": {"kinds": [{"group": "ml.example.com", "kind": "Experiment"}]}, "tier": "gpu-batch"}
    assert parse(policy_file(kinds=[EXPERIMENT], rules=[rule])).rules[0].match.kinds


MISTAKES = {
    "no plural": (
        {"group": "ml.example.com", "kind": "Experiment"},
        (
            "kinds[0]: ml.example.com/Experiment is not in the table of workload kinds, so write its plural, "
            "as in the paths of its API"
        ),
    ),
    "a gang of the table without its plural": (
        {"group": "batch", "kind": "CronJob", "gang": True},
        "kinds[0]: gang and scale need the plural of batch/CronJob, so write it, as in the paths of its API",
    ),
    "a scale of the table without its plural": (
        {"group": "ray.io", "kind": "RayCluster", "scale": "spec.workers"},
        "kinds[0]: gang and scale need the plural of ray.io/RayCluster, so write it, as in the paths of its API",
    ),
    "two words on one thing": (
        EXPERIMENT | {"type": "training", "usualType": "batch"},
        "kinds[0]: write either type (every such object is one) or usualType (most are)",
    ),
    "a type that is none": (
        EXPERIMENT | {"type": "research"},
        "kinds[0].type: \"research\": should be 'training', 'serving', 'batch' or 'interactive'",
    ),
    "a pod": ({"kind": "Pod", "type": "batch"}, "kinds[0]: Pod is no workload; write the kinds that make pods"),
    "a number in another list": (
        EXPERIMENT | {"templates": [{"path": "spec.workers.*.template", "replicas": "spec.counts.*"}]},
        "kinds[0].templates[0]: replicas: spec.counts.* must lie in the same item as path: spec.workers.*.template",
    ),
    "a path that is none": (
        EXPERIMENT | {"templates": [{"path": "spec.workers[*].template"}]},
        (
            'kinds[0].templates[0].path: "spec.workers[*].template": should be names with dots between, '
            "as in spec.workers.*.template; * is each item of a list or map"
        ),
    ),
}


@pytest.mark.parametrize(("kind", "problem"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_with_its_field(kind: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(policy_file(kinds=[kind]))
    assert refused.value.problems == (problem,)


def test_a_kind_is_listed_once() -> None:
    with pytest.raises(ConfigError) as refused:
        parse(policy_file(kinds=[EXPERIMENT, EXPERIMENT]))
    assert refused.value.problems == ("kinds[1]: ml.example.com/Experiment: listed twice",)
