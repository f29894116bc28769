"""Facts of the cluster, watched or looked up: priority classes, namespaces, tenants, owners, groups, claims, pods."""
