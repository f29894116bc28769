"""The ports of the page: which there are, and who gets in."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from webhook.page.content import Sources
from webhook.page.readers import Readers
from webhook.page.routes import page_app
from webhook.server.listener import listen
from webhook.server.run import AppPort
from webhook.server.settings import Settings
from webhook.server.tls import LiveCertificate

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PagePorts:
    """Where the page listens: on loopback for whoever gets there, and on all addresses for those with a token."""

    local: socket.socket | None
    guarded: socket.socket | None

    @classmethod
    def opened(cls, settings: Settings) -> Self:
        """Those that the settings ask for. Raises OSError."""
        local = listen(LOOPBACK, settings.page_port) if settings.page_port is not None else None
        guarded = listen(settings.host, settings.page_tls_port) if settings.page_tls_port is not None else None
        return cls(local, guarded)

    def serving(self, sources: Sources, readers: Readers, certificate: LiveCertificate) -> Iterator[AppPort]:
        """What is served there."""
        if self.local is not None:
            yield AppPort(page_app(sources), self.local)
        if self.guarded is not None:
            yield AppPort(page_app(sources, readers), self.guarded, certificate.listening)
