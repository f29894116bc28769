"""The demo is short, and its refusal is the last that one reads."""

import io

from rich.console import Console

from tests.unit.cli.reviewing import EXAMPLES
from webhook.cli.demo.demonstration import SAME_HOOK, run_demo


def test_the_demo_shows_a_hook_once_and_ends_with_the_refusal() -> None:
    out = io.StringIO()
    run_demo(EXAMPLES, Console(file=out, width=80))
    text = out.getvalue()
    assert text.count("[ -e $d/listening ]") == 1
    assert f"preStop: {SAME_HOOK}" in text
    assert "note: it would be changed as Deployment team-beta/vllm-chat, above" in text
    assert len(text.splitlines()) < 300
    assert text.splitlines()[-2].startswith("refused: PyTorchJob team-alpha/llm-finetune: tenant alpha: gpu-training")
