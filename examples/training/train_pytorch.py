"""PyTorch under torchrun: all ranks agree when to save, the first one writes, and the next run goes on from there.

    torchrun --nproc-per-node=2 train_pytorch.py

CHECKPOINT names a folder, STEPS the last step, STEP_SECONDS a step's length. It fits y = 2x + 1 and needs no GPU.
"""

import atexit
import json
import os
import pathlib
import time
from typing import Any

import torch
import torch.distributed as dist
from gpu_tiers_checkpoint import checkpoint_requested, checkpoint_saved, listen, step_saved
from torch.nn.parallel import DistributedDataParallel

CHECKPOINT = pathlib.Path(os.environ.get("CHECKPOINT", "checkpoint")) / "state.pt"
STEPS = int(os.environ.get("STEPS", "100"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.1"))


def any_rank(mine: bool) -> bool:  # noqa: FBT001 - the protocol's signature
    """Whether one rank was asked. The tensor lies in main memory, so gloo reduces it without waiting for a GPU."""
    asked = torch.tensor(int(mine))
    dist.all_reduce(asked, op=dist.ReduceOp.MAX)
    return bool(asked)


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What this rank learns from in a step: it depends on both alone, so a resumed run is the same run."""
    source = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
    x = torch.rand(8, 1, generator=source) * 2 - 1
    return x, 2 * x + 1


def save(step: int, **parts: Any) -> None:
    """Write on one rank, to a temporary file first: a run that is killed in the middle keeps the earlier state."""
    if dist.get_rank() == 0:
        CHECKPOINT.parent.mkdir(parents=True, exist_ok=True)
        unfinished = CHECKPOINT.with_suffix(".tmp")
        torch.save({"step": step, **{name: part.state_dict() for name, part in parts.items()}}, unfinished)
        unfinished.replace(CHECKPOINT)
    dist.barrier()
    step_saved(step)


def load(**parts: Any) -> int:
    """The step of the run before, whose state is put back into the parts; 0 where there is none."""
    if not CHECKPOINT.exists():
        return 0
    state = torch.load(CHECKPOINT, map_location="cpu", weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    return int(state["step"])


def say(**line: float) -> None:
    """Print a line of JSON, once for all ranks."""
    if dist.get_rank() == 0:
        print(json.dumps(line), flush=True)


def main() -> None:
    """Train from where the run before stopped."""
    dist.init_process_group()  # gloo for tensors in memory and, where there is a GPU, NCCL for its own
    atexit.register(dist.destroy_process_group)  # else gloo's threads may abort a rank at its very end
    torch.manual_seed(0)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    line = torch.nn.Linear(1, 1).to(device)
    model = DistributedDataParallel(line)
    optimizer = torch.optim.Adam(line.parameters(), lr=0.01)
    done = load(model=line, optimizer=optimizer)
    say(resumed=done)
    listen()
    for step in range(done + 1, STEPS + 1):
        time.sleep(STEP_SECONDS)
        x, y = (part.to(device) for part in batch(step))
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        say(step=step, slope=line.weight.item(), offset=line.bias.item())
        if checkpoint_requested(any_rank):
            save(step, model=line, optimizer=optimizer)
            checkpoint_saved(dist.barrier)
    save(STEPS, model=line, optimizer=optimizer)


if __name__ == "__main__":
    main()
