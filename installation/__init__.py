"""gpu-tiers in a local cluster: the chart, the webhook, the examples' kinds and tenants. Not shipped."""
