"""`gpu-tiers demo`: its options. It imports the server when it starts, so that `--help` does not wait for it."""

from pathlib import Path

from rich.console import Console

from webhook.cli.command import fail, with_options


@with_options
def demo(examples: Path = Path("examples")) -> None:
    """Serve the webhook over TLS with a new certificate, send it the examples, and show its answers.

    Use it to see gpu-tiers without a cluster. The ledger is in memory and starts empty; the workloads are booked one
    after another.

    Example: `gpu-tiers demo --examples examples`
    """
    if not examples.is_dir():
        fail(f"{examples}: there is no such folder; run it in a checkout of gpu-tiers, or name one with --examples")
    from webhook.cli.demo.demonstration import run_demo  # noqa: PLC0415 - see above

    run_demo(examples, Console())
