"""The values that decisions depend on: tiers, tenants, hooks, the whole policy, the facts about one request."""
