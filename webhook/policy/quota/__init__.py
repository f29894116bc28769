"""GPUs and quotas: how many a pod holds, whether they fit, the refusal, and a tenant's conditions."""
