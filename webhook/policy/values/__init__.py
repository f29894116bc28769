"""The values that decisions rest on: tiers, tenants, hooks, the whole policy, the facts about one request."""
