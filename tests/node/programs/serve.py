"""Serves, and writes the path of each request."""

import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import story

name = socket.gethostname()


class Model(BaseHTTPRequestHandler):
    def do_GET(self):
        story.tell(f"{name} answers {self.path}")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(name.encode())


ThreadingHTTPServer(("", 8000), Model).serve_forever()
