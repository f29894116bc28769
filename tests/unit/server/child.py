"""A process that serves until it is told to stop; prints its metrics port and its port."""

import asyncio

import uvloop

from tests.unit.server.serving import HOST, a_bundle, allowing
from webhook.server.endpoint import Limits
from webhook.server.listener import Drain, listen, port_of
from webhook.server.metrics import Metrics
from webhook.server.run import AdmissionPort, serve
from webhook.server.tls import LiveCertificate


async def main() -> None:
    drain = Drain(seconds=60)
    drain.on_signals()
    observability, admission = listen(HOST, 0), listen(HOST, 0)
    print(port_of(observability), port_of(admission), flush=True)
    async with asyncio.timeout(60):
        await serve(
            AdmissionPort(allowing, allowing, LiveCertificate(a_bundle()), admission, Limits(body_seconds=4)),
            observability,
            {},
            Metrics(),
            drain,
        )


uvloop.run(main())
