"""A process that serves until it is told to stop; prints its metrics port. Started by test_drain.py."""

import asyncio

import uvloop

from tests.unit.server.serving import HOST, a_bundle, allowing
from webhook.server.drain import Drain
from webhook.server.listener import listen, port_of
from webhook.server.metrics import Metrics
from webhook.server.run import serve
from webhook.server.tls import LiveCertificate


async def main() -> None:
    drain = Drain(seconds=60)
    drain.on_signals()
    observability = listen(HOST, 0)
    print(port_of(observability), flush=True)
    async with asyncio.timeout(60):
        await serve(
            mutate=allowing,
            validate=allowing,
            checks={},
            certificate=LiveCertificate(a_bundle()),
            metrics=Metrics(),
            drain=drain,
            admission=listen(HOST, 0),
            observability=observability,
        )


uvloop.run(main())
