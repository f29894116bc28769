"""Unit tests of webhook.policy.workloads: the table of kinds, templates, how many pods."""
