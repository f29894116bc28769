"""GPUs against quotas: how many a pod holds, what fits, the sentence of a refusal, a tenant's conditions."""
