"""GPUs and quotas: how many GPUs a pod uses, whether they fit, the refusal, and a tenant's conditions."""
