"""Unit tests of webhook.policy.values: what decisions take."""
