"""The leader: one replica updates the accounts to match pods, workloads, namespaces and quotas."""
