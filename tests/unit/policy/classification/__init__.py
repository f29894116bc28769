"""Unit tests of webhook.policy.classification: what a workload is."""
