"""The day before the scene, for a Prometheus: GPUs used by tier, and evictions."""

from collections.abc import Callable, Mapping

USED: Mapping[str, tuple[tuple[int, int], ...]] = {
    "gpu-training": ((0, 4), (95, 8), (420, 12), (640, 16), (1060, 8), (1290, 0), (1405, 4)),
    "gpu-serving": ((0, 3), (60, 4), (170, 5), (560, 3), (700, 2), (1330, 3)),
    "gpu-batch": ((0, 8), (95, 4), (250, 7), (420, 5), (640, 4), (900, 6), (1060, 14), (1290, 16), (1405, 4)),
    "gpu-interactive": ((0, 2), (130, 4), (420, 2), (530, 1), (640, 0), (1310, 2), (1395, 1)),
}
"""GPUs, each from a minute of the day on."""
EVICTED = (
    (95, "gpu-batch", 1),
    (420, "gpu-batch", 2),
    (420, "gpu-interactive", 2),
    (640, "gpu-batch", 1),
    (640, "gpu-interactive", 1),
    (1405, "gpu-batch", 2),
)
"""Pods, each at a minute of the day."""


def day() -> dict[str, Callable[[int], float]]:
    """Return the leader's counters by series, each as its value at a minute of the day."""
    return {
        **{
            f'gpu_tiers_gpu_seconds_total{{tenant="beta",tier="{tier}",flavor=""}}': _gpu_seconds(steps)
            for tier, steps in USED.items()
        },
        **{f'gpu_tiers_checkpoints_total{{tier="{tier}",outcome="saved"}}': _evicted(tier) for tier in USED},
    }


def _gpu_seconds(steps: tuple[tuple[int, int], ...]) -> Callable[[int], float]:
    ends = [minute for minute, _ in steps[1:]] + [10**6]

    def evictions(minute: int) -> float:
        return 60.0 * sum(
            gpus * (min(minute, end) - begin) for (begin, gpus), end in zip(steps, ends, strict=True) if begin < minute
        )

    return evictions


def _evicted(tier: str) -> Callable[[int], float]:
    return lambda minute: float(sum(pods for at, of, pods in EVICTED if of == tier and at <= minute))
