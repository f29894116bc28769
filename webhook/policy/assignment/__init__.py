"""Assigns a tier to a pod: the steps, the limits, and the same tier again when the webhook is reinvoked."""
