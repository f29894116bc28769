"""What else a command hints at, in lower case: launchers, waiting, a look; and what in it only prepares. Data.

A phrase is words as they are typed. `*` in it is any text without a blank, `* ` at its start any program.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby
from operator import itemgetter

import msgspec

from webhook.policy.workloads.workload_types import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

LONGEST = 4096
"""Characters of a text that are searched: an entrypoint script may be a megabyte."""
_ANY_PROGRAM = "* "


class Commands(msgspec.Struct, frozen=True):
    """Phrases, separated by commas, and what no phrase can say, as regular expressions."""

    phrases: str
    patterns: tuple[str, ...] = ()


@cache
def pattern_of(commands: Commands) -> re.Pattern[str]:
    """One expression for all phrases and patterns of an entry; a phrase begins and ends where a word does.

    It is made when it is first asked for: all of them take a quarter of what a command takes to start.
    """
    phrases = [phrase.strip() for phrase in commands.phrases.split(",") if phrase]
    of_any = [_expression(each.removeprefix(_ANY_PROGRAM)) for each in phrases if each.startswith(_ANY_PROGRAM)]
    of_one = [_expression(each) for each in phrases if not each.startswith(_ANY_PROGRAM)]
    together = [rf"\w[\w.-]* +(?:{'|'.join(of_any)})"] if of_any else []  # a program's name is read once for all
    every = (*together, *_by_beginning(of_one), *commands.patterns)
    return re.compile(r"(?<![\w.-])(?:" + "|".join(every) + ")", re.DOTALL)


def _by_beginning(expressions: Iterable[str]) -> Iterator[str]:
    """One for all that begin with the same letter, so that most of a text is compared with that alone."""
    for letter, group in groupby(sorted(expressions, key=itemgetter(0)), key=itemgetter(0)):
        yield letter + "(?:" + "|".join(each[1:] for each in group) + ")"


def _expression(phrase: str) -> str:
    words = re.escape(phrase).replace(r"\ ", " +").replace(r"\*", r"\S*")
    return words if phrase.endswith("*") else words + r"(?![\w.-])"


OVERRIDES: Mapping[WorkloadType, Commands] = {
    BATCH: Commands(
        "",
        (
            r"--(?:eval|evaluate|evaluation|test|predict|prediction|infer|inference|val|validate|benchmark)[-_]only\b",
            r"--(?:mode|task|job[-_]type)(?:=| )(?:predict|infer\w*|eval\w*|test|score)\b",
            (
                r"\A(?![\s\S]*--(?:do[-_]train|num[-_]train|per[-_]device[-_]train|learning[-_]rate))"
                r"[\s\S]*?--do[-_](?:predict|eval)\b"
            ),
        ),
    ),
    INTERACTIVE: Commands("", (r"\A(?:\S*(?:ba)?sh (?:-\w+ )*)?sleep +inf(?:inity)?\s*[\n;]\s*\S",)),
}
"""What turns the rest into something else: a training script that only predicts, one that is never reached."""

LAUNCHERS: Mapping[WorkloadType, Commands] = {
    TRAINING: Commands(
        "torchrun, torch.distributed.run, torch.distributed.launch, accelerate launch, accelerate-launch, deepspeed*, "
        "fleetrun, colossalai run, lightning run, fabric run, msrun, oneflow.distributed*, "
        "paddle.distributed*, hyperpodrun, dmlc-submit, bpslaunch, determined.launch*"
    ),
    BATCH: Commands("", (r"(?:mpirun|mpiexec|srun)\b(?![^\n;&|]{0,500}\b(?:python\d?|bash|sh|julia)\b)",)),
}
"""Starters of many processes: what they start tells more. MPI without Python runs a compiled program: a simulation."""

WAITING = Commands(
    "tail -f /dev/null, tail -nf /dev/null, sleep inf, sleep infinity, sshd, service ssh start, dropbear",
    (
        r"sleep +(?:\d{5,}|\d+d|\d{2,}h)\b",
        r"while +(?:true|:|\[ *1 *\]) *; *do +sleep",
        r"(?:ba)?sh *$",
    ),
)
"""Commands that do nothing until a person comes in; they tell where nothing else of the workload does anything."""

DOZING = Commands(
    WAITING.phrases,
    (
        *WAITING.patterns,
        r"\A\s*(?:\S*(?:ba)?sh (?:-\w+ )*)?\s*sleep +\d{3,}[smh]?\s*\Z",
        r"sleep +(?:3[7-9]\d\d|[4-9]\d{3}|\dh)\b",
    ),
)
"""The same of what no Job has made: there a sleep alone is no placeholder for work, nor one of over an hour."""

CHECKS: Mapping[WorkloadType, Commands] = {
    BATCH: Commands(
        "nvidia-smi, rocm-smi, amd-smi, rocminfo, clinfo, hl-smi, xpu-smi, npu-smi, gpustat, vulkaninfo, "
        "vainfo, eglinfo",
        (
            (
                r"\A[^\n;&|]{0,80}python\S* -c .{0,400}"
                r"(?:torch\.cuda\.(?:is_available|device_count|get_device_name)|is_gpu_available|"
                r"list_physical_devices|jax\.devices)\([^)\n]{0,9}\)\)?[\"'\s]*\Z"
            ),
        ),
    )
}
"""A look at the GPUs, which most things begin with: it tells where nothing else is done, not even waiting."""

VARIABLES: Mapping[WorkloadType, Commands] = {
    TRAINING: Commands(
        "epochs, num_epochs, n_epochs, max_epochs, total_epochs, train_epochs, num_train_epochs, learning_rate, lr, "
        "max_steps, train_steps, num_train_steps, gradient_accumulation_steps, weight_decay, num_epoch, nb_epochs, "
        "training_epochs, training_steps, total_timesteps, per_device_train_batch_size, train_batch_size, grad_accum, "
        "grad_accum_steps, lr_scheduler, max_grad_norm, warmup_ratio, lora_alpha, lora_dropout, lora_r, "
        "early_stopping_patience, sm_channel_train, sm_channel_training, "
        # how the processes of one training find each other
        "tf_config, dmlc_role, dmlc_ps_root_uri, paddle_trainer_id, paddle_trainers_num, paddle_trainer_endpoints"
    ),
    SERVING: Commands(
        "nim_cache_path, nim_http_api_port, nim_model_profile, nim_manifest_profile, nim_tags_selector, "
        "nim_served_model_name, ollama_keep_alive, ollama_num_parallel, ollama_max_loaded_models, ollama_load_timeout, "
        "vllm_api_key, max_total_tokens, max_batch_prefill_tokens, max_client_batch_size"
    ),
    INTERACTIVE: Commands(
        "jupyter_token, jupyter_password, jupyter_enable_lab, coder_agent_token, vnc_pw, vnc_password, display"
    ),
}
"""Names of environment variables that only a training program reads, only a server, or only what a person sits at."""

NOISE = (
    r"(?:^|\s)#[^\n]*"
    r"|://[^\s/\"']*"
    r"|(?:(?<=[\n;&|({])|^|(?<=-c)|(?<=-ec)|(?<=-lc))[ \t]*(?:(?:then|do|sudo) +)?(?:/[\w./-]*/)?"
    r"(?:echo|printf|cd|mkdir|export|source|git|wget|curl|apt-get|apt|apk|yum|dnf|(?:conda|micromamba|mamba)(?! run)|"
    r"pip[\d.]*|python[\d.]* -m pip|"
    r"uv pip|huggingface-cli (?:login|download)|"
    r"hf (?:auth|download)|aws s3|gsutil|gcloud|chmod|chown|cp|mv|ln|rm|ls|cat|rsync|ulimit|kubectl|"
    r"modelscope download|s5cmd|rclone|azcopy|until|while !|tar|unzip|wandb login)(?![\w/.-])[^\n;&|]*"
)
"""Comments, hosts of addresses, and commands that only prepare: what they name isn't what runs."""

SCRIPT = (
    r"(?:(?:^|\s)-m\s+|function_to_execute[ =]|\stask-name\s)(?P<module>[a-z_][\w.-]*)"
    r"|(?<![\w.-])(?P<file>[\w.-]{1,120}?)\.(?:py|sh|ipynb|jl|r|lua)\b"
)
"""Where a script's or a module's name stands in a command."""
