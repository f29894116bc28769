"""A training as a user writes it: Lightning's Trainer on a tiny model, and no line of gpu-tiers.

Its first argument is a JSON object: `steps`, `sleep` in seconds, `workers`, `validate`, and `arguments` for Trainer. It
prints a JSON line for the step that it begins after, for each step, and for what it has learned.
"""

import json
import sys
import time

import torch
from lightning.pytorch import Callback, LightningModule, Trainer, seed_everything
from torch.utils.data import DataLoader, Dataset

OPTIONS = json.loads(sys.argv[1])


class Numbers(Dataset):
    """The same numbers in each run."""

    def __len__(self):
        return OPTIONS.get("examples", 400)

    def __getitem__(self, index):
        numbers = torch.randn(8, generator=torch.Generator().manual_seed(index))
        return numbers, numbers.sum().unsqueeze(0) / 2


class Tiny(LightningModule):
    """A model with dropout, so that random numbers matter."""

    def __init__(self):
        super().__init__()
        layers = torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1)
        self.net = torch.nn.Sequential(*layers)
        self.loss = 0.0

    def training_step(self, batch, _):
        time.sleep(OPTIONS.get("sleep", 0))
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.loss = loss.item()
        return loss

    def validation_step(self, batch, _):
        self.log("validated", torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        adam = torch.optim.Adam(self.parameters(), 1e-3)
        return [adam], [{"scheduler": torch.optim.lr_scheduler.StepLR(adam, 50, 0.9), "interval": "step"}]


class Tell(Callback):
    """Prints what the trainer does, in the first process."""

    def on_train_start(self, trainer, *_):
        if trainer.is_global_zero:
            print(json.dumps({"resumed": trainer.global_step}), flush=True)

    def on_train_batch_end(self, trainer, *_):
        if trainer.is_global_zero:
            print(json.dumps({"step": trainer.global_step}), flush=True)


def main():
    seed_everything(0)
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "log_every_n_steps": 10}
    given = {"max_steps": OPTIONS["steps"], "default_root_dir": "out", **quiet, **OPTIONS.get("arguments", {})}
    trainer, model = Trainer(callbacks=[Tell()], **given), Tiny()
    data = [DataLoader(Numbers(), 4, shuffle=True, num_workers=OPTIONS.get("workers", 0))]
    if OPTIONS.get("validate"):
        data.append(DataLoader(Numbers(), 4))
    trainer.fit(model, *data)
    trainer.save_checkpoint("out/final.ckpt")
    if trainer.is_global_zero:
        weights = sum(each.double().abs().sum().item() for each in model.parameters())
        print(json.dumps({"learned": [model.loss, weights], "last": trainer.global_step}), flush=True)


if __name__ == "__main__":
    main()
