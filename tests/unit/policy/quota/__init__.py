"""Unit tests of webhook.policy.quota: demand, rows, what fits."""
