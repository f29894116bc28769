"""Reads a hook's fields, from the policy file or from annotations; each raises ValueError with what it must be.

Annotations hold only text, so a port or a command is read from text too.
"""

import re
import shlex

import msgspec

SIGNALS = ("HUP", "INT", "QUIT", "USR1", "USR2", "TERM")
"""What a program may take for "save now" (POSIX names, as `kill -s` takes them)."""
HIGHEST_PORT = 65_535
LONGEST_COMMAND = 4_096
"""Characters: a command, not a script; that belongs in the image."""
LONGEST_PATH = 1_024

_PORT_NAME = re.compile(r"(?=[a-z0-9-]{1,15}\Z)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
"""IANA_SVC_NAME, as the API server has it for ports."""
_FILE = re.compile(r"/[A-Za-z0-9/._-]*")
_URL_PATH = re.compile(r"/[!-~]*")


def port(value: int | str) -> int | str:
    number = int(value) if re.fullmatch("[0-9]{1,6}", str(value)) else None
    if number is None and isinstance(value, str) and _PORT_NAME.fullmatch(value):
        return value
    if number is None or not 0 < number <= HIGHEST_PORT:
        raise ValueError(f"must be a port: a number from 1 to {HIGHEST_PORT}, or a port's name")
    return number


def file_path(value: str) -> str:
    """The path of a folder or a file that a shell reads as it stands."""
    if len(value) > LONGEST_PATH or not _FILE.fullmatch(value) or ".." in value.split("/") or not value.strip("/"):
        raise ValueError("must be an absolute path below / of letters, digits and . _ - /")
    return value.rstrip("/")


def url_path(value: str) -> str:
    if len(value) > LONGEST_PATH or not _URL_PATH.fullmatch(value):
        raise ValueError("must be a URL's path: / and printable ASCII without blanks")
    return value


def signal(value: str) -> str:
    """A signal's POSIX name; SIGUSR1 is USR1."""
    name = value.removeprefix("SIG")
    if name not in SIGNALS:
        raise ValueError(f"must be a signal that a program can catch: {', '.join(SIGNALS)}")
    return name


def command(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """A program and its arguments. Text is a JSON list of texts, else it is split into words as a shell does."""
    words = _words(value) if isinstance(value, str) else value
    if not words or not words[0] or any("\0" in word for word in words):
        raise ValueError(f"must be a command: a list of texts, {LONGEST_COMMAND} characters at most")
    return words


def _words(text: str) -> tuple[str, ...]:
    try:
        if len(text) > LONGEST_COMMAND:
            return ()
        is_json = text.startswith(("[", "{"))  # no program's name starts so
        return msgspec.json.decode(text, type=tuple[str, ...]) if is_json else tuple(shlex.split(text))
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return ()
