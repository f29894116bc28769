"""A person who asks a server by a command."""

from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from webhook.cli.main import app


def asked(folder: Path, server: str, user: dict[str, Any], *command: str) -> tuple[int, str]:
    """Return the exit status and the output of a command."""
    config = folder / "config"
    context = {"cluster": "one", "user": "ada", "namespace": "alpha"}
    config.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "one", "cluster": {"server": server}}],
                "users": [{"name": "ada", "user": user}],
                "contexts": [{"name": "one", "context": context}],
                "current-context": "one",
            }
        )
    )
    result = CliRunner().invoke(app, [*command, f"--kubeconfig={config}"])
    return result.exit_code, result.output
