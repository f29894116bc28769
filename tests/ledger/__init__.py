"""The ledger in Kubernetes against an API server of the tests' own, whose time and whose faults a test decides."""
