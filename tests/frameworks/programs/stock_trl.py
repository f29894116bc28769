"""A fine-tuning as a user writes it: TRL's SFTTrainer on a tiny model, and no line of gpu-tiers."""

import json

from datasets import Dataset
from stock_huggingface import OPTIONS, Tell, learned, tiny_model
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer


def main():
    set_seed(0)
    words = {f"w{number}": number for number in range(62)} | {"<pad>": 62, "<eos>": 63}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words)), pad_token="<pad>", eos_token="<eos>"
    )
    texts = [[(first * 7 + place * 3) % 62 for place in range(16)] for first in range(2000)]
    given = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "per_device_train_batch_size": 4, "bf16": False}
    given |= {
        "max_steps": OPTIONS["steps"],
        "save_steps": 100,
        "logging_steps": 10,
        "output_dir": "out",
        "max_length": 32,
    }
    trainer = SFTTrainer(
        model=tiny_model(),
        args=SFTConfig(**given),
        train_dataset=Dataset.from_dict({"input_ids": texts}),
        processing_class=tokenizer,
        callbacks=[Tell()],
    )
    trainer.train()
    print(json.dumps(learned(trainer)), flush=True)


if __name__ == "__main__":
    main()
