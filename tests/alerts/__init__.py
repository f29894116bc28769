"""Alerts and dashboard: each query is one that Prometheus reads, on metrics that exist, and each alert fires."""
