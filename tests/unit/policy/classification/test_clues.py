"""A clue says whose name it is; where several contradict each other, one that shows counts before one that hints."""

import pytest

from tests.builders import PodBuilder, a_deployment, a_pod, a_workload
from webhook.policy.classification.classify import classify
from webhook.policy.workloads.kind_table import BUILT_IN

PORT = [{"containerPort": 3000}]


def evidence_of(pod: PodBuilder, name: str = "x") -> str:
    return str(classify(pod.view(), [a_deployment(name=name).view()], BUILT_IN))


def of_unknown_kind(pod: PodBuilder, api_version: str, kind: str) -> str:
    return str(classify(pod.owned_by(a_workload(api_version, kind, "x")).view(), (), BUILT_IN))


def container(name: str, **more: object) -> PodBuilder:
    return a_pod("x").asking(name=name, image="registry.example.com/x:1", **more)


@pytest.mark.parametrize(
    ("pod", "name", "evidence"),
    [
        (container("main"), "chat-server", 'serving, a guess from its name ("server")'),
        (container("chat-server"), "x", 'serving, a guess from its container\'s name ("server")'),
        (container("main").labelled({"app": "chat-server"}), "x", 'serving, a guess from its label app ("server")'),
        (container("main", ports=PORT), "chat-server", 'serving, a guess from its name and port ("server")'),
        (container("server", ports=PORT), "x", 'serving, a guess from its container\'s name and port ("server")'),
    ],
)
def test_a_clue_says_whose_name_it_is(pod: PodBuilder, name: str, evidence: str) -> None:
    assert evidence_of(pod, name) == evidence


def test_the_api_group_of_an_unknown_kind_is_called_so() -> None:
    pod = container("main")
    assert of_unknown_kind(pod, "models.example.com/v1", "Thing") == "None"
    assert of_unknown_kind(pod, "serving.example.com/v1", "Thing") == 'serving, a guess from its API group ("serving")'


@pytest.mark.parametrize(
    "group", ["batch.example.com", "batch.paddlepaddle.org", "apps.example.com", "test.example.com"]
)
def test_what_groups_are_called_after_kubernetes_own_tells_nothing(group: str) -> None:
    """An operator's group is often called after the built-in one: batch.volcano.sh has a Job that trains."""
    assert of_unknown_kind(container("main"), f"{group}/v1", "PaddleJob") == "None"


def test_the_kind_of_an_unknown_server_and_its_port_show_together_that_it_serves() -> None:
    assert of_unknown_kind(container("main", ports=PORT), "example.com/v1", "LLMService") == (
        'serving, a guess from its kind and port ("service")'
    )


@pytest.mark.parametrize(
    ("pod", "name", "evidence"),
    [
        # an interactive name beside a probe of model servers
        (
            container("main", readinessProbe={"httpGet": {"path": "/v1/models", "port": 80}}),
            "vision-lab",
            'serving, a guess from its probe ("/v1/models")',
        ),
        # Jupyter's port beside a server's image
        (
            a_pod("x").asking(image="vllm/vllm-openai:v1", ports=[{"containerPort": 8888}]),
            "x",
            'serving, a guess from its image ("vllm")',
        ),
        # any port beside a name and an image that say serving
        (
            a_pod("x").asking(image="registry.example.com/model-llm-serve:1", ports=PORT),
            "model-llm-serve",
            'serving, a guess from its image ("serve")',
        ),
        (
            a_pod("x").asking(image="registry.example.com/model-llm:1", ports=PORT),
            "model-llm-serve",
            'serving, a guess from its name and port ("serve")',
        ),
    ],
)
def test_what_only_hints_takes_nothing_from_what_shows(pod: PodBuilder, name: str, evidence: str) -> None:
    assert evidence_of(pod, name) == evidence


def test_what_an_unknown_kind_is_called_gives_way_to_what_runs() -> None:
    pod = a_pod("x").running("vllm", "serve", "m").asking(name="second")
    assert of_unknown_kind(pod, "example.com/v1", "TrainJob") == 'serving, a guess from its command ("vllm serve")'
