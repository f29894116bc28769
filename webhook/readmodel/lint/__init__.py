"""What is wrong with the tiers, quotas, hooks and webhooks of a cluster: a rule for each mistake."""
