"""The Kubernetes client: connection, requests, errors, watches."""
