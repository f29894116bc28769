"""What the policy would do to each workload that there is, and what contradicts it."""
