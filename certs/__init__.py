"""Where the webhook's serving certificate comes from, and who trusts it."""
