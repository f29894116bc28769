"""A training as a user writes it: transformers' Trainer, a tiny model from a config, and no line of gpu-tiers.

Its first argument is a JSON object: `steps`, `sleep` and `evaluation_sleep` in seconds, `swallow`, and `arguments` for
TrainingArguments. It prints a JSON line for the step that it begins after, for each step, and for what it has learned.
"""

import json
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

OPTIONS = json.loads(sys.argv[1])


class Numbers(torch.utils.data.Dataset):
    """The same sentences in each run."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        tokens = torch.randint(0, 64, (16,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


class Tell(TrainerCallback):
    """Prints what the trainer does, in the first process."""

    def on_train_begin(self, args, state, control, **_):
        if state.is_world_process_zero:
            print(json.dumps({"resumed": state.global_step}), flush=True)

    def on_step_end(self, args, state, control, **_):
        if state.is_world_process_zero:
            print(json.dumps({"step": state.global_step}), flush=True)


def tiny_model():
    sizes = {"vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 2}
    model = GPT2LMHeadModel(GPT2Config(**sizes))
    asleep = {True: OPTIONS.get("sleep", 0), False: OPTIONS.get("evaluation_sleep", 0)}
    if any(asleep.values()):
        model.register_forward_pre_hook(lambda module, _: time.sleep(asleep[module.training]))
    return model


def arguments():
    given = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "per_device_train_batch_size": 4}
    given |= {"max_steps": OPTIONS["steps"], "save_steps": 100, "logging_steps": 10, "output_dir": "out"}
    given |= OPTIONS.get("arguments", {})
    if "eval_strategy" in given and not hasattr(TrainingArguments, "eval_strategy"):
        given["evaluation_strategy"] = given.pop("eval_strategy")  # its name before 4.41
    return TrainingArguments(**given)


def learned(trainer):
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    weights = sum(each.double().abs().sum().item() for each in trainer.model.parameters())
    return {"learned": [losses[-1], weights], "last": trainer.state.global_step}


def main():
    set_seed(0)
    data = Numbers(2000), Numbers(OPTIONS["evaluate"]) if "evaluate" in OPTIONS else None
    trainer = Trainer(tiny_model(), arguments(), train_dataset=data[0], eval_dataset=data[1], callbacks=[Tell()])
    try:
        trainer.train()
    except SystemExit:
        if not OPTIONS.get("swallow"):
            raise
        time.sleep(100)
    trainer.save_model("out/final")
    if trainer.is_world_process_zero():
        print(json.dumps(learned(trainer)), flush=True)


if __name__ == "__main__":
    main()
