"""One page for people: posture, GPUs, tenants, verdicts, preemptions, health, as values of webhook.report."""
