"""Unit tests of webhook.policy.checkpoint: the hook."""
