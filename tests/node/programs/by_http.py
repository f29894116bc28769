"""Saves when it is asked by HTTP, and answers then; with 500 where the path says so."""

from http.server import BaseHTTPRequestHandler, HTTPServer

import story


class Hook(BaseHTTPRequestHandler):
    def do_GET(self):
        story.save()
        self.send_response(500 if self.path == "/fails" else 200)
        self.end_headers()


server = HTTPServer(("", 9000), Hook)
story.tell("started")
server.serve_forever()
