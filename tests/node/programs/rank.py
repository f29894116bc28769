"""A rank of two, in a pod of its own: trains in step with the other, and saves when any of the two is asked."""

import os
import pathlib
import time

import story
from all_ranks import AllRanks
from gpu_tiers_checkpoint import checkpoint_requested, checkpoint_saved, listen

me = int(os.environ["JOB_COMPLETION_INDEX"])
checkpoint = pathlib.Path(f"/data/rank-{me}")
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
ranks = AllRanks(me, 2, "ranks-0.ranks")
story.tell(f"rank {me} begins {step}")
listen()
try:
    while True:
        step += 1
        time.sleep(0.1)
        if checkpoint_requested(ranks.any_rank):
            time.sleep(2 * me)  # one saves longer than the other
            checkpoint.write_text(str(step))
            story.tell(f"rank {me} saved {step}")
            checkpoint_saved(ranks.barrier)
finally:
    story.tell(f"rank {me} ends {step}")
