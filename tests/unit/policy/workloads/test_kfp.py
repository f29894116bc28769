"""Compiled Kubeflow pipelines: what the steps run and ask for stands as JSON in parameters of an Argo Workflow."""

import json
from typing import Any

import pytest

from tests.builders import WorkloadBuilder, a_policy, a_workload
from webhook.policy.classification.classify import classify
from webhook.policy.quota.demand import demand_of
from webhook.policy.workloads.kind_table import BUILT_IN
from webhook.policy.workloads.templates import container_in

Tree = dict[str, Any]


def parameter(function: str, **accelerator: str) -> Tree:
    """Return a component's implementation as the compiler writes it."""
    container = {
        "image": "python:3.11",
        "command": ["sh", "-c", "python3 -m kfp.dsl.executor_main"],
        "args": ["--executor_input", "{{$}}", "--function_to_execute", function],
        "resources": {"accelerator": accelerator, "cpuLimit": 1},
    }
    return {"name": "implementations-22deaaeaf18e6b86", "value": json.dumps(container)}


def pipeline(*steps: Tree) -> WorkloadBuilder:
    others: list[Tree] = [
        {"name": "components-root", "value": '{"dag":{"tasks":{"train":{"componentRef":{"name":"comp-train"}}}}}'},
        {"name": "message", "value": "{hello}"},
        {"name": "when", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
    ]
    launcher = {"name": "system-container-impl", "container": {"image": "overridden", "command": ["overridden"]}}
    return a_workload(
        "argoproj.io/v1alpha1", "Workflow", arguments={"parameters": [*others, *steps]}, templates=[launcher]
    )


@pytest.mark.parametrize(("function", "workload_type"), [("train_model", "training"), ("echo", "batch")])
def test_a_pipeline_is_what_its_steps_run(function: str, workload_type: str) -> None:
    found = pipeline(parameter(function, resourceType="nvidia.com/gpu", resourceCount="2")).view()
    launcher, step = found.members
    assert (launcher.path, step.path) == ("spec.templates.0.container", "spec.arguments.parameters.3")
    assert [demand_of(each.template, (), a_policy()) for each in (launcher, step)] == [0, 2]
    said = classify(step.template, (found,), BUILT_IN)
    assert said is not None
    assert said.type == workload_type


@pytest.mark.parametrize(
    ("accelerator", "limits"),
    [
        ({"resourceType": "nvidia.com/gpu", "resourceCount": "1"}, {"nvidia.com/gpu": "1"}),
        ({"type": "nvidia.com/gpu", "count": "4"}, {"nvidia.com/gpu": "4"}),
        ({}, None),
    ],
    ids=["as it is now", "by its older names", "none"],
)
def test_an_accelerator_is_a_limit(accelerator: Tree, limits: Tree | None) -> None:
    found = container_in(parameter("train", **accelerator))
    assert found is not None
    assert found["resources"].get("limits") == limits


@pytest.mark.parametrize("value", ["train.py", "{hello}", '{"image": 5}', "{}", '{"a":' * 100_000, None, 5])
def test_other_parameters_are_none(value: object) -> None:
    assert container_in({"name": "x", "value": value}) is None
