"""The program gpu-tiers: it ends quietly by Ctrl-C also while its libraries are imported, and logs to stderr alone."""

import gc
import signal


def program() -> None:
    """Run a command; while one runs, Ctrl-C is its own."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(250_000)  # what is imported stays: to look for garbage among it takes a seventh of a start
    from webhook.cli.main import app  # noqa: PLC0415 - see above
    from webhook.server import logs  # noqa: PLC0415

    logs.set_up("warning", "console")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


if __name__ == "__main__":
    program()
