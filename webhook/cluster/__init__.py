"""What the cluster says, watched: priority classes, namespaces, tenants, owners, groups, claims, pods."""
