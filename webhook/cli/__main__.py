"""The program gpu-tiers: Ctrl-C ends it without a traceback even during imports, and it logs only to stderr."""

import gc
import signal


def program() -> None:
    """Run a command. SIGINT kills the process during the imports, and raises KeyboardInterrupt in the command."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(250_000)  # garbage collections during the imports take a seventh of a start and find nothing
    from webhook.cli.main import app  # noqa: PLC0415 - see above
    from webhook.server import logs  # noqa: PLC0415

    logs.set_up("warning", "console")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


if __name__ == "__main__":
    program()
