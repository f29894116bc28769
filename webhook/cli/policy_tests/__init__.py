"""Policy tests: suites in YAML, what they expect, and how it is compared with what the webhook says."""
