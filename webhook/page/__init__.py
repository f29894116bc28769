"""One page for people: posture, tenants, verdicts, preemptions, health. It shows what report has."""
