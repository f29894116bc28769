"""The source of the webhook's serving certificate, and the clients that trust it."""
