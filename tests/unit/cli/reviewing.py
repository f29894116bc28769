"""`gpu-tiers review` as the tests run it."""

import json
from pathlib import Path

from typer.testing import CliRunner

from webhook.cli.main import app

EXAMPLES = Path(__file__).parents[3] / "examples"
WORLD = ["--policy", str(EXAMPLES / "policies" / "four-tier.yaml"), "--tenants", str(EXAMPLES / "tenants")]


def review(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    result = CliRunner().invoke(app, ["review", *arguments], input=stdin)
    return result.exit_code, result.stdout, result.stderr


def findings(*arguments: str, stdin: str | None = None) -> list[dict[str, object]]:
    _, out, _ = review(*arguments, "-o", "json", stdin=stdin)
    return [json.loads(line) for line in out.splitlines()]
