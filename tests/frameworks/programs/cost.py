"""Times what the listener adds to a step, with the events that transformers' Trainer sends its callbacks in each.

Its argument is the number of steps. Started by torchrun, each step also has an all-reduce, as a training has. It prints
a JSON line with microseconds: a step with and without the listener, the least of many rounds.
"""

import json
import sys
import time

import gpu_tiers_listen
import torch
from transformers import TrainerControl, TrainerState, TrainingArguments
from transformers import trainer as watched
from transformers.trainer_callback import CallbackHandler, DefaultFlowCallback

STEPS, ROUNDS = int(sys.argv[1]), 40
EVENTS = ("on_step_begin", "on_pre_optimizer_step", "on_optimizer_step", "on_step_end")


class Trainer:
    """A trainer as the listener sees it."""

    def __init__(self):
        self.args = TrainingArguments(output_dir="out", report_to=[], use_cpu=True, save_strategy="no")
        self.state, self.control = TrainerState(max_steps=10**9), TrainerControl()
        self.callback_handler = CallbackHandler([DefaultFlowCallback()], torch.nn.Linear(1, 1), None, None, None)
        self.is_in_train, self.took = True, 0.0

    def _save_checkpoint(self, model, trial):
        """Never called here."""

    def train(self, resume_from_checkpoint=None):
        number, distributed = torch.zeros(1), torch.distributed.is_initialized()
        begun = time.perf_counter()
        for _ in range(STEPS):
            if distributed:
                torch.distributed.all_reduce(number)
            self.state.global_step += 1
            for event in EVENTS:
                getattr(self.callback_handler, event)(self.args, self.state, self.control)
        self.took = (time.perf_counter() - begun) / STEPS * 1e6


def took(train):
    trainer = Trainer()
    train(trainer)
    return trainer.took


def main():
    Trainer()  # makes the process group
    plain = Trainer.train
    watched.Trainer, stock = Trainer, watched.Trainer
    gpu_tiers_listen.attach_huggingface(watched)
    listening, Trainer.train = Trainer.train, plain
    watched.Trainer = stock
    rounds = [(took(plain), took(listening)) for _ in range(ROUNDS)]
    without, with_it = (min(column) for column in zip(*rounds, strict=True))
    if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:
        print(json.dumps({"without": without, "with": with_it}), flush=True)


main()
