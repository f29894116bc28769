"""Patterns that let a command, an image, a name or a port be taken for a hint; weak evidence, called a guess. Data."""

import re
from collections.abc import Mapping

from webhook.policy.facts import WorkloadType
from webhook.policy.kinds.row import Source

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

_PATTERNS: Mapping[Source, tuple[tuple[str, WorkloadType], ...]] = {
    "command": (
        (r"\b(jupyter(-lab|-notebook|hub-singleuser)?|start-notebook\S*|code-server|rserver|sshd)\b", INTERACTIVE),
        (r"\b(vllm serve|vllm\.entrypoints|tritonserver|sglang|text-generation-launcher|ollama serve)\b", SERVING),
        (r"\b(torchrun|torch\.distributed\.(run|launch)|deepspeed|accelerate launch)\b", TRAINING),
    ),
    "image": (
        (r"(jupyter|notebook|code-server|rstudio)", INTERACTIVE),
        (r"(vllm|triton-?(inference-)?server|text-generation-inference|sglang|ollama)", SERVING),
    ),
    "name": (
        (r"(^|-)(jupyter|notebook|code-server|rstudio|dev)(-|$)", INTERACTIVE),
        (r"(^|-)(serve|serving|server|inference|predictor|api|vllm|triton)(-|$)", SERVING),
        (r"(^|-)(train|training|trainer|finetune|fine-tune|pretrain)(-|$)", TRAINING),
    ),
    "port": ((r":8888$", INTERACTIVE),),
}

GUESSES = {source: tuple((re.compile(text), kind) for text, kind in rows) for source, rows in _PATTERNS.items()}
"""By source: patterns with their types; the first that matches decides."""

LONGEST = 4096
"""Characters of a text that are searched: an entrypoint script may be a megabyte."""
