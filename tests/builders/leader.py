"""A leader as trainings see it: an HTTPS port that takes progress reports and answers with wishes for saves."""

import json
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from certs.source import make_files
from localcluster.waiting import wait_until

Answer = dict[str, Any]


@dataclass
class Leader:
    """The reports by pod, whose name is its token. A report within `soonest` seconds of the last one gets a 429."""

    folder: Path
    soonest: float = 0.0
    reports: defaultdict[str, list[tuple[float, Answer]]] = field(default_factory=lambda: defaultdict(list))
    answers: dict[str, Answer | bytes] = field(default_factory=dict)
    refused: int = 0
    env: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def serving(self) -> Iterator["Leader"]:
        made = make_files(self.folder, ["localhost"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "tls.crt", self.folder / "tls.key")
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.env = {
            "GPU_TIERS_REPORT": f"https://localhost:{server.server_port}/v1/progress",
            "GPU_TIERS_REPORT_CA": made.ca.decode(),
        }
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()

    def pod(self, name: str = "pod") -> dict[str, str]:
        """The variables by which a pod reports."""
        token = self.folder / f"token-{name}"
        token.write_text(name)
        return self.env | {"GPU_TIERS_REPORT_TOKEN": str(token)}

    def wish(self, name: str, step: int = 0, *, within: float = 0.0, pod: str = "pod") -> None:
        """Answer that pod's reports with this wish from now on."""
        self.answers[pod] = {"report_in": 5.0, "save": {"id": name, "step": step, "in": within}}

    def outcomes(self, pod: str = "pod") -> list[Answer]:
        """Return the outcomes of wishes in the order in which that pod reported them, without repetitions in a row."""
        told = [each["save"] for _, each in self.reports[pod] if "save" in each]
        return [each for before, each in zip([None, *told], told, strict=False) if each != before]

    def outcome(self, name: str, pod: str = "pod", seconds: float = 60) -> Answer:
        """Return the outcome of a wish once that pod has reported it; TimeoutError after `seconds`."""
        told = lambda: next((each for each in self.outcomes(pod) if each["id"] == name), {})  # noqa: E731
        wait_until(lambda: bool(told()), seconds, f"the outcome of {name}")
        return told()

    def taken(self, pod: str, line: Answer) -> tuple[int, bytes]:
        before = self.reports[pod][-1][0] if self.reports[pod] else -self.soonest
        if time.monotonic() - before < self.soonest:
            self.refused += 1
            return 429, b"this pod has just reported\n"
        self.reports[pod].append((time.monotonic(), line))
        answer = self.answers.get(pod, b"")
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return (200, body) if body else (204, b"")


def _handler(leader: Leader) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            line = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, body = leader.taken(self.headers["authorization"].removeprefix("Bearer "), line)
            self.send_response(status)
            if status != 204:
                self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
