"""The errors of requests to the API server, a class for each kind."""

import re
from collections.abc import Mapping
from http import HTTPStatus

import msgspec


class ApiError(Exception):
    """A request to the API server failed. The text is a sentence for logs and users."""


class Unreachable(ApiError):  # noqa: N818 - reads as what happened
    """There was no answer: the connection was refused or broken off, or it took too long."""


class TooLong(ApiError):  # noqa: N818
    """An answer was too long and was not read to its end, because it would take too much memory."""


class Failed(ApiError):  # noqa: N818
    """An answer that is no success. `code` is the HTTP status, and `said` the API server's own message on `path`."""

    def __init__(self, sentence: str, code: int, said: str = "", path: str = "") -> None:
        super().__init__(sentence)
        self.code = code
        self.said = said
        self.path = path


class NotFound(Failed):
    """404: no such object."""


class NoSuchApi(NotFound):
    """404: the API server does not serve that group, version or resource at all."""


class Unauthorized(Failed):
    """401, or 403 without credentials: the API server does not know the user."""


class Forbidden(Failed):
    """403: the user may not do this."""


class Conflict(Failed):
    """409: the object has another resourceVersion or uid than the request, or its name is taken."""


class Gone(Failed):
    """410: the resourceVersion or the continue token is too old."""


class Invalid(Failed):
    """422: the API does not accept the object, or a `test` of a JSON patch does not hold."""


_NO_SUCH_RESOURCE = "the server could not find the requested resource"
"""The message of a Status on an unknown resource of a served group. For an unknown group there is no Status."""

_NOBODY = 'User "system:anonymous" cannot '
"""The message of a Status to a user without credentials."""

_OF_CODE: Mapping[int, type[Failed]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
}


class _Status(msgspec.Struct):
    message: str = ""


_SECRET = re.compile(r"(?<=/)[a-z0-9-]{26,63}(?=/(?:mutate|validate)\b)")
"""The secret first segment of the webhook's paths, which the API server prints if it gets no answer."""


def without_secret(said: str) -> str:
    """Replace the secret in paths of the API server's message, because logs, pipelines and tickets store it."""
    return _SECRET.sub("SECRET", said)


def failure(method: str, path: str, code: int, body: bytes) -> Failed:
    """Return the error for an HTTP status, with the message of the API server's Status if there is one."""
    try:
        said = without_secret(msgspec.json.decode(body, type=_Status).message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = ""
    nobody = code == HTTPStatus.FORBIDDEN and _NOBODY in said
    unserved = code == HTTPStatus.NOT_FOUND and (not said or said.startswith(_NO_SUCH_RESOURCE))
    kind = NoSuchApi if unserved else Unauthorized if nobody else _OF_CODE.get(code, Failed)
    return kind(f"{method} {path}: HTTP {code}{f', {said[:500]}' if said else ''}", code, said, path)
