"""What one replica does for all: it keeps the accounts in line with pods, workloads, namespaces and quotas."""
