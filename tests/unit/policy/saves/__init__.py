"""Unit tests of webhook.policy.saves."""
