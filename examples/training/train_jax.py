"""JAX with Orbax: all processes ask each other after each step, and JAX's own preemption notice counts too.

    python train_jax.py 127.0.0.1:1234 1 0                 # the coordinator, how many processes, which one this is

CHECKPOINT names a folder, STEPS the last step, STEP_SECONDS a step's length. It fits y = 2x + 1 and needs no GPU.
"""

import functools
import json
import os
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from gpu_tiers_checkpoint import checkpoint_requested, checkpoint_saved, listen, step_saved
from jax.experimental.multihost_utils import process_allgather, sync_global_devices
from jax.sharding import Mesh, NamedSharding, PartitionSpec

CHECKPOINT = pathlib.Path(os.environ.get("CHECKPOINT", "checkpoint")).absolute()
STEPS = int(os.environ.get("STEPS", "100"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.1"))
SAVE_EVERY = 1000
RATE, INERTIA = 0.01, 0.9

State = dict[str, jax.Array]


def fresh(everywhere: NamedSharding) -> State:
    """What training begins with, the same on all devices."""
    return {name: jax.device_put(jnp.zeros(2), everywhere) for name in ("line", "speed")}


@functools.partial(jax.jit, static_argnames="split")
def after_a_step(state: State, step: int, split: NamedSharding) -> State:
    """Gradient descent with momentum. The batch depends on the step alone, so a resumed run is the same run."""
    x = jax.random.uniform(jax.random.key(step), (16,), minval=-1, maxval=1)
    x = jax.lax.with_sharding_constraint(x, split)

    def loss(line: jax.Array) -> jax.Array:
        return jnp.mean((line[0] * x + line[1] - (2 * x + 1)) ** 2)

    speed = INERTIA * state["speed"] + jax.grad(loss)(state["line"])
    return {"line": state["line"] - RATE * speed, "speed": speed}


def any_process(mine: bool) -> bool:  # noqa: FBT001 - the protocol's signature
    """Whether one process was asked. It waits for the step's end: where steps are short, ask after each tenth."""
    return bool(process_allgather(jnp.asarray(mine)).any())


def say(**line: float) -> None:
    """Print a line of JSON, once for all processes."""
    if jax.process_index() == 0:
        print(json.dumps(line), flush=True)


def main(coordinator: str, processes: int, process: int) -> None:
    """Train from where the run before stopped."""
    listen()  # before the next line: SIGTERM belongs to JAX, and listen() would take it back
    jax.distributed.initialize(coordinator, processes, process)
    mesh = Mesh(jax.devices(), "data")
    state, split = fresh(NamedSharding(mesh, PartitionSpec())), NamedSharding(mesh, PartitionSpec("data"))
    manager = ocp.CheckpointManager(CHECKPOINT, options=ocp.CheckpointManagerOptions(save_interval_steps=SAVE_EVERY))
    done = manager.latest_step() or 0
    if done:
        state = manager.restore(done, args=ocp.args.StandardRestore(state))
    say(resumed=done)
    for step in range(done + 1, STEPS + 1):
        time.sleep(STEP_SECONDS)
        state = after_a_step(state, step, split)
        say(step=step, slope=float(state["line"][0]), offset=float(state["line"][1]))
        asked = checkpoint_requested(any_process)
        manager.save(step, args=ocp.args.StandardSave(state), force=asked)  # does so at its interval, too
        if asked or manager.reached_preemption(step):  # SIGTERM, on which JAX's processes agree by themselves
            manager.wait_until_finished()
            step_saved(step)
            checkpoint_saved(functools.partial(sync_global_devices, "saved"))
    manager.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
