"""Unit tests of webhook.ledger."""
