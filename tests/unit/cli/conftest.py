"""A server that answers the commands, and a person who asks it."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

Answers = Callable[[str], tuple[int, str]]
Answering = Callable[..., str]


@pytest.fixture
def answering() -> Iterator[Answering]:
    """The address of a server that answers each path as it is told, and keeps what it was `asked`."""
    servers: list[HTTPServer] = []

    def start(answer: Answers, asked: list[str] | None = None) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if asked is not None:
                    asked.append(self.path)
                status, body = answer(self.path.partition("?")[0])
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body.encode())

            def do_PATCH(self) -> None:
                self.send_response(403)
                self.end_headers()
                self.wfile.write(b'{"kind": "Status", "message": "pods is forbidden"}')

            def do_POST(self) -> None:
                """Answer a SelfSubjectAccessReview: nothing is allowed."""
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(201)
                self.end_headers()
                self.wfile.write(b'{"status": {"allowed": false}}')

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
