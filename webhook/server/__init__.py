"""The server process: wires all parts, and serves them with TLS, probes, metrics and a drain."""
