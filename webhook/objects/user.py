"""A user as the API server knows one: in a review of a request, and in the answer about a token."""

import msgspec

from webhook.objects.view import View


class User(View, frozen=True):
    """The name, and what authorizers may also look at. Groups and extra stay JSON, because few decisions need them.

    Source: UserInfo of authentication.k8s.io/v1.
    """

    username: str = ""
    uid: str = ""
    groups: msgspec.Raw = msgspec.Raw(b"[]")
    extra: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def key(self) -> tuple[str, str, bytes, bytes]:
        """Return all fields, as a key for a cache."""
        return self.username, self.uid, bytes(self.groups), bytes(self.extra)
