"""The least that two admission webhooks in Python do: bare ASGI, on uvicorn. `asgi_pair.py PORT FOLDER PATCH`.

As localcluster/go/webhook-pair: /mutate answers the same patch for every pod, and /validate says yes.
"""

import sys
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from certs.source import CERTIFICATE, KEY

HEADERS = [(b"content-type", b"application/json")]


class Asked(msgspec.Struct):
    """The fields of a request that are read."""

    uid: str


class Review(msgspec.Struct):
    """The fields of a review that are read."""

    request: Asked


def pair(patch: str) -> ASGIApp:
    """Return both webhooks as one ASGI app; `patch` is the JSON patch that /mutate answers."""
    read = msgspec.json.Decoder(Review).decode
    given: dict[str, Any] = {"/mutate": {"patchType": "JSONPatch", "patch": patch.encode()}, "/validate": {}}
    head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        response = {"uid": read(body).request.uid, "allowed": True, **given[scope["path"]]}
        text = msgspec.json.encode({**head, "response": response})  # bytes become base64, as a patch is sent
        length = (b"content-length", str(len(text)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, length]})
        await send({"type": "http.response.body", "body": text})

    return app


if __name__ == "__main__":
    port, folder, patch = sys.argv[1:]
    uvicorn.run(
        pair(patch),
        port=int(port),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        log_level="warning",
        timeout_keep_alive=120,  # above the 90 s of the API server
        ssl_certfile=Path(folder) / CERTIFICATE,
        ssl_keyfile=str(Path(folder) / KEY),
    )
