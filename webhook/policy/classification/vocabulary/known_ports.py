"""What a port hints at. Data."""

import re

from webhook.policy.workloads.workload_types import WorkloadType

_TRAINING, SERVING, _BATCH, INTERACTIVE = WorkloadType

PORTS = {
    8888: INTERACTIVE, 8787: INTERACTIVE, 5901: INTERACTIVE, 6901: INTERACTIVE, 6080: INTERACTIVE, 8188: INTERACTIVE,
    2718: INTERACTIVE, 5900: INTERACTIVE, 7681: INTERACTIVE, 7801: INTERACTIVE, 7865: INTERACTIVE,
    14500: INTERACTIVE, 47984: INTERACTIVE, 47989: INTERACTIVE, 47990: INTERACTIVE, 49100: INTERACTIVE,
    8000: SERVING, 8001: SERVING, 8500: SERVING, 8501: SERVING, 11434: SERVING, 30000: SERVING, 7860: SERVING,
}  # fmt: skip
"""Default ports: Jupyter, RStudio, VNC, ComfyUI, marimo, ttyd, SwarmUI, Fooocus, Xpra, Sunshine,
Omniverse's stream; Triton, vLLM, TF Serving, Ollama, SGLang, Gradio."""

RENDEZVOUS_PORTS = frozenset(
    {22, 2222, 1234, 3389, 4040, 6006, 6379, 6818, 7078, 7079, 8265, 8476, 8786, 8787, 10001, 12355, 18515, 23456}
    | {29400, 29500}
)
"""Ports by which the processes of one workload find each other: nobody waits behind them for answers."""

PROBES = re.compile(r"/(?:v\d+(?:/|$)|health|ready|ping$|generate|predict|invocations|openapi|docs$)")
"""How paths begin at which servers of models say that they are ready; a notebook says it below /api or /lab."""
