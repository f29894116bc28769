"""The examples get what their comments say."""

from tests.unit.cli.reviewing import EXAMPLES, WORLD, findings


def test_each_example_gets_the_tier_that_its_comment_says() -> None:
    tiers = {}
    for file in sorted(EXAMPLES.glob("*.yaml")):
        for found in findings("-f", str(file), *WORLD):
            tiers[f"{found['kind']}/{found['name']}"] = (found["workloadType"], found["tier"], found["allowed"])
    assert tiers == {
        "Deployment/dashboard": (None, None, True),
        "Deployment/jupyter-notebook": ("interactive", "gpu-interactive", True),
        "Deployment/vllm-chat": ("serving", "gpu-serving", True),
        "InferenceService/sentiment": ("serving", "gpu-serving", True),
        "Job/score-catalogue": ("batch", "gpu-batch", True),
        "Job/train-ranker": ("training", "gpu-training", True),
        "JobSet/pretrain": ("training", "gpu-training", True),
        "JobSet/sweep": ("training", "gpu-batch", True),
        "LeaderWorkerSet/vllm-70b": ("serving", "gpu-serving", True),
        "MPIJob/allreduce": ("training", "gpu-serving", True),
        "Notebook/workbench": ("interactive", "gpu-interactive", True),
        "Pod/transcribe": ("batch", "gpu-batch", True),
        "Pod/debug-shell": ("interactive", "gpu-interactive", True),
        "Pod/finetune-small": ("training", "gpu-training", True),
        "PyTorchJob/llm-finetune": ("training", "gpu-training", False),
        "RayCluster/explore": ("interactive", "gpu-interactive", True),
        "RayJob/embeddings": ("batch", "gpu-batch", True),
        "RayService/reranker": ("serving", "gpu-serving", True),
        "TrainJob/classifier": ("training", "gpu-serving", True),
    }


def test_every_refused_example_is_refused_but_the_one_that_needs_a_full_quota() -> None:
    allowed = {found["name"] for found in findings("-f", str(EXAMPLES / "refused"), *WORLD) if found["allowed"]}
    assert allowed == {"finetune-next"}
