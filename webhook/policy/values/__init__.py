"""What decisions take: tiers, tenants, hooks, the whole policy, the facts about one request."""
