"""Unit tests of webhook.policy: values in, values out."""
