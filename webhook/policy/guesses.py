"""Patterns that let a name, an image or a command be taken for a hint; weak evidence, always called a guess. Data."""

import re

from webhook.policy.tier_policy import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

GUESSES: tuple[tuple[str, re.Pattern[str], WorkloadType], ...] = tuple(
    (source, re.compile(pattern), kind)
    for source, pattern, kind in (
        ("command", r"\b(jupyter(-lab|-notebook|hub-singleuser)?|code-server|rserver)\b", INTERACTIVE),
        ("command", r"\b(vllm|tritonserver|sglang|text-generation-launcher|tgi|ollama serve)\b", SERVING),
        ("command", r"\b(torchrun|torch\.distributed\.(run|launch)|deepspeed|accelerate launch)\b", TRAINING),
        ("image", r"(jupyter|notebook|code-server|rstudio)", INTERACTIVE),
        ("image", r"(vllm|triton-?(inference-)?server|text-generation-inference|sglang|ollama)", SERVING),
        ("name", r"(^|-)(jupyter|notebook|code-server|rstudio|dev)(-|$)", INTERACTIVE),
        ("name", r"(^|-)(serve|serving|server|inference|predictor|api|vllm|triton)(-|$)", SERVING),
        ("name", r"(^|-)(train|training|trainer|finetune|fine-tune|pretrain)(-|$)", TRAINING),
    )
)
"""Source, pattern, type; the first that matches decides. What runs (command) tells more than what it is called."""

LONGEST = 4096
"""Characters of a text that are searched: an entrypoint script may be a megabyte."""
