"""The composition root: ASGI, TLS, probes, drain, metrics."""
