"""Where the pod templates of a Ray cluster lie, wherever an operator embeds one. Data."""

from webhook.policy.workloads.group_counts import GroupCount, least_ray_workers, once
from webhook.policy.workloads.kinds.row import Templates
from webhook.policy.workloads.pod_counts import ray_workers


def ray_cluster(place: str, times: GroupCount = once) -> tuple[Templates, Templates]:
    """The head's and each worker group's, in the RayClusterSpec at a place."""
    return (
        Templates(place, "headGroupSpec.template", times=times),
        Templates(f"{place}.workerGroupSpecs.*", "template", ray_workers, times=times, least=least_ray_workers),
    )
