"""The webhook's serving certificate: its sources, and the CA bundle by which the API server trusts it."""
