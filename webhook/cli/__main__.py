"""The program gpu-tiers: it ends quietly by Ctrl-C even while its libraries are imported, and logs to stderr alone."""

import gc
import signal


def program() -> None:
    """Run a command, which handles Ctrl-C itself while it runs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(250_000)  # imported objects stay: searching them for garbage takes a seventh of a start
    from webhook.cli.main import app  # noqa: PLC0415 - see above
    from webhook.server import logs  # noqa: PLC0415

    logs.set_up("warning", "console")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


if __name__ == "__main__":
    program()
