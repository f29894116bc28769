"""Keeps the policy file of a webhook beside the cluster as the release's ConfigMap has it."""

import time

from installation.local_webhook import installed_policy, policy_file
from localcluster import Cluster
from localcluster.kubectl import KubectlError

SECONDS = 5.0


class PolicyFile:
    """Brings the file up to date when it is called, every few seconds at most, as a kubelet does with a mounted one."""

    def __init__(self) -> None:
        self._looked = 0.0

    def __call__(self, cluster: Cluster) -> None:
        """Write the ConfigMap's text into the file if they differ and SECONDS have passed since the last look.

        Do nothing without a file, as for a webhook in a pod, or if the ConfigMap can't be read.
        """
        if time.monotonic() - self._looked < SECONDS or not policy_file(cluster).exists():
            return
        self._looked = time.monotonic()
        try:
            text = installed_policy(cluster)
        except KubectlError:
            return  # the release was uninstalled, or the API server is busy
        if text != policy_file(cluster).read_text():
            policy_file(cluster).write_text(text)
