"""One page for people: posture, tenants, verdicts, preemptions, health. It shows the values of report."""
