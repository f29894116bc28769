"""Unit tests of webhook.config: the policy file, as text."""
