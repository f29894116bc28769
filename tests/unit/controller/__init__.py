"""Unit tests of webhook.controller."""
