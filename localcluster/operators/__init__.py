"""Workload operators as plain processes beside a control plane: their CRDs, rights and webhooks are their own.

    with ControlPlane() as cluster:
        jobset = RunningOperator(cluster, JOBSET)   # builds it the first time, applies its manifests, waits for /readyz
        jobset.kill(); jobset.start()               # an outage
        jobset.end()                                # its process and its webhook configurations go

A row of `rows.py` says all that differs between operators. Each acts as its own ServiceAccount. The API server reaches
their webhooks through a Service of type ExternalName, so their own certificates are right.
"""

from localcluster.operators.operator import Operator
from localcluster.operators.running import RunningOperator

__all__ = ["Operator", "RunningOperator"]
