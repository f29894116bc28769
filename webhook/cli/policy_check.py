"""`gpu-tiers policy check`: whether a policy file would be taken, before it is."""

from pathlib import Path
from typing import Annotated

import typer

from webhook.cli.fail import fail
from webhook.cli.named_policy import fields_named
from webhook.cli.policy_diff import diff
from webhook.config.errors import ConfigError
from webhook.config.load import DEFAULT_PRESET
from webhook.config.model import PolicyFile

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="Look at policy files.")

app.command()(diff)


@app.callback()
def policy_commands() -> None:
    """Look at policy files."""


@app.command()
def check(file: Annotated[Path, typer.Argument(metavar="FILE|PRESET", help="Policy file or preset.")]) -> None:
    """Say what is wrong with a policy file, each mistake with its field's path. Exits with 2 if anything is.

    A good one is summed up in one line. The webhook refuses the same mistakes, so ask before you install.
    """
    try:
        found = fields_named(file)
    except ConfigError as error:
        fail(str(error))
    typer.echo(f"{file}: {_summary(found)}")


def _summary(file: PolicyFile) -> str:
    """Such as: `good: preset four-tier, mode Enforce, tiers gpu-training 1000, gpu-serving 800, default …`."""
    ranked = sorted(file.tiers, key=lambda tier: -tier.value)
    tiers = ", ".join(f"{tier.name} {tier.value}" for tier in ranked)
    preset = DEFAULT_PRESET if file.preset is None else file.preset
    return f"good. Preset {preset or 'none'}, mode {file.mode}, tiers {tiers}, default {file.default_tier}"
