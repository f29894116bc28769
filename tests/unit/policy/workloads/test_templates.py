"""The places of a workload's templates, and the sentence about those that are none."""

import pytest

from tests.builders import Tree, WorkloadBuilder, a_deployment, a_job, a_workload
from tests.builders.operators import (
    GPU_POD,
    MODEL,
    a_jobset,
    a_raycluster,
    a_seldondeployment,
    a_sparkapplication,
    an_inferenceservice,
)
from tests.builders.words import told
from tests.unit.policy.workloads.counted import GPUS
from webhook.objects.group_kind import GroupKind
from webhook.objects.refusal import Refused
from webhook.policy.workloads.kind_table import BUILT_IN
from webhook.policy.workloads.templates import pod_templates


def test_a_template_is_found_at_its_place() -> None:
    paths = [member.path for member in a_raycluster(replicas=1).view().members]
    assert paths == ["spec.headGroupSpec.template", "spec.workerGroupSpecs.0.template"]


def test_labels_beside_a_bare_spec_are_its_pods_labels() -> None:
    service = an_inferenceservice(predictor={"model": MODEL, "labels": {"team": "a"}, "annotations": {"note": "b"}})
    (member,) = service.view().members
    assert (member.template.metadata.labels, member.template.metadata.annotations) == ({"team": "a"}, {"note": "b"})


@pytest.mark.parametrize("workload", [each for each, _ in GPUS.values()], ids=GPUS)
def test_every_form_of_template_can_be_had_as_a_pod(workload: WorkloadBuilder) -> None:
    tree = workload.json()
    kind = GroupKind(tree["apiVersion"].rpartition("/")[0], tree["kind"])
    for template, member in zip(pod_templates(tree, BUILT_IN.by_kind[kind]), workload.view().members, strict=True):
        assert isinstance(template.pod, dict)
        assert template.pod["spec"]["containers"]
        assert (template.path, template.count) == (member.path, member.count)


BROKEN: dict[str, tuple[WorkloadBuilder, str]] = {
    "replicas of a predictor that are no number": (
        a_seldondeployment({}, replicas="x"),
        'spec.predictors.1.replicas: "x" is not a count of pods; write a whole number from 0 to 1000000',
    ),
    "replicas that are no number": (
        a_deployment().having("spec.replicas", "two"),
        'spec.replicas: "two" is not a count of pods; write a whole number from 0 to 1000000',
    ),
    "replicas below nothing": (
        a_raycluster(replicas=-1),
        'spec.workerGroupSpecs.0.replicas: "-1" is not a count of pods; write a whole number from 0 to 1000000',
    ),
    "replicas that are true": (
        a_deployment().having("spec.replicas", True),
        'spec.replicas: "True" is not a count of pods; write a whole number from 0 to 1000000',
    ),
    "more pods than there can be": (
        a_jobset(100_000, parallelism=100_000),
        "spec.replicatedJobs.0: makes 10000000000 pods; a workload may make 1000000 at most",
    ),
    "containers that are no list": (
        a_job().having("spec.template.spec", {"containers": "x"}).having("spec.template.spec.containers", "y"),
        "spec.template.spec.containers: expected a list, got text",
    ),
    "a bare spec's containers that are no list": (
        an_inferenceservice(predictor={"model": MODEL, "containers": 5}),
        "spec.predictor.containers: expected a list, got a whole number",
    ),
    "a template that is not a map": (
        a_workload("apps/v1", "Deployment", template="x"),
        "spec.template: expected a map, got text",
    ),
    "GPUs of Spark that are no number": (
        a_sparkapplication(executor={"gpu": {"name": "nvidia.com/gpu", "quantity": "two"}}),
        'spec.executor.gpu.quantity: "two" is not a count of GPUs; write a whole number from 0 to 1000000',
    ),
    "GPUs of Spark below nothing": (
        a_sparkapplication(driver={"gpu": {"name": "nvidia.com/gpu", "quantity": -1}}),
        'spec.driver.gpu.quantity: "-1" is not a count of GPUs; write a whole number from 0 to 1000000',
    ),
    "GPUs of Spark without a name": (
        a_sparkapplication(driver={"gpu": {"quantity": 1}}),
        "spec.driver.gpu.name: absent; write the name of the resource, such as nvidia.com/gpu",
    ),
    "GPUs of Spark that are no map": (
        a_sparkapplication(driver={"gpu": 2}),
        'spec.driver.gpu: "2" is not a map; write {name: nvidia.com/gpu, quantity: 1}',
    ),
    "executors in Spark's configuration that are no number": (
        a_sparkapplication(executor={}, sparkConf={"spark.executor.instances": "many"}),
        (
            'spec.sparkConf.spark.executor.instances: "many" is not a count of pods; write a whole '
            "number from 0 to 1000000"
        ),
    ),
    "containers of Spark's template that are no list": (
        a_sparkapplication(driver={"template": {"spec": {"containers": "x"}}}),
        "spec.driver.template.spec.containers: is not a list; write a list",
    ),
    "trials that are no number": (
        a_workload(
            "kubeflow.org/v1beta1",
            "Experiment",
            parallelTrialCount="all",
            trialTemplate={"trialSpec": {"spec": {"template": GPU_POD}}},
        ),
        'spec.parallelTrialCount: "all" is not a count of trials; write a whole number from 0 to 1000000',
    ),
    "an affinity of another shape": (
        a_job().having("spec.template.spec.affinity", {"nodeAffinity": []}),
        "spec.template.spec.affinity.nodeAffinity: expected a map, got a list",
    ),
}


@pytest.mark.parametrize(("workload", "sentence"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_template_is_refused_with_its_place(workload: WorkloadBuilder, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        workload.view()
    assert told(refused.value) == sentence


ODD: list[Tree] = [{}, {"spec": None}, {"spec": []}, {"spec": {"template": None}}, {"spec": "x"}]


@pytest.mark.parametrize("tree", ODD)
def test_a_workload_that_holds_no_template_makes_no_pods(tree: Tree) -> None:
    assert not [each for row in BUILT_IN.rows if row.kind != "Pod" for each in pod_templates(tree, row)]
