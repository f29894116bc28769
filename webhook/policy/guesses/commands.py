"""What a command hints at, in lower case: programs, launchers, waiting; and what in it only prepares. Data.

A phrase is words as they are typed. `*` in it is any text without a blank, `* ` at its start any program.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.policy.words import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

LONGEST = 4096
"""Characters of a text that are searched: an entrypoint script may be a megabyte."""


@dataclass(frozen=True, slots=True)
class Commands:
    """Phrases, separated by commas, and what no phrase can say, as regular expressions."""

    phrases: str
    patterns: tuple[str, ...] = ()


PROGRAMS: Mapping[WorkloadType, Commands] = {
    INTERACTIVE: Commands(
        "jupyterhub-singleuser, start-notebook*, start-singleuser*, code-server, openvscode-server, rserver, theia, "
        "rstudio-server, marimo edit, coder agent, code tunnel, code serve-web, ttyd, gotty, zeppelin*, pvserver, "
        "vncserver, x11vnc, xvnc, kasmvnc*, novnc*, websockify, xrdp, selkies*, startxfce4, comfyui*, comfy launch, "
        "invokeai-web, kohya_gui*, llamafactory-cli webui",
        (
            r"jupyter[- ]?(?:lab|notebook|server|hub-singleuser)?(?![-\w.]| +(?:nbconvert|execute|run|trust)\b)",
            r"(?:launch|main)\.py (?![^\n;&|]{0,300}--nowebui\b)[^\n;&|]{0,300}--listen\b",
        ),
    ),
    SERVING: Commands(
        "* serve, trtllm-serve, tensorrt_llm.commands.serve, sglang.launch_server*, sglang.srt*, "
        "tritonserver, text-generation-launcher, text-generation-server, text-embeddings-router, "
        "infinity_emb, infinity-emb, ollama run, llama-server, llama_cpp.server, "
        "openllm start, aphrodite run, "
        "tensorflow_model_server, torchserve, mlserver start, seldon-core-microservice, huggingfaceserver, koboldcpp*, "
        "serve run, serve deploy, serve start, uvicorn*, gunicorn*, hypercorn*, granian, waitress-serve, "
        "flask run, fastapi run, fastapi dev, streamlit run, gradio*, chainlit run, fastchat.serve*, xinference*, "
        "lorax-launcher, dynamo run, dynamo.vllm*, dynamo.sglang*, dynamo.trtllm*, dynamo.frontend*, "
        "dynamo.mocker*, lightllm.server*, cog.server*, mindieservice_daemon, riva_server, start-riva*, milvus run, "
        "local-ai, litellm, nim_server, nimlib*, swift deploy, rasa run, kobold, jellyfin, frigate, whisper-server, "
        "wyoming-*, mediamtx, paddle_serving_server*",
        (r"vllm\.entrypoints\.(?!\S{0,40}run_batch)\S+", r"launch\.py [^\n;&|]{0,300}--nowebui\b"),
    ),
    TRAINING: Commands(
        "* train, * fit, * finetune, * pretrain, "
        "tune run, autotrain, trl sft, trl dpo, trl grpo, trl ppo, "
        "trl kto, trl rloo, trl reward, trl vllm-serve, swift sft, swift pt, swift rlhf, torchtune*, "
        "litgpt finetune*, litgpt pretrain*, verl.trainer*, main_ppo, main_grpo, "
        "openrlhf*, ft_launcher, dlrover-run, horovodrun, ns-train, fairseq-train, fairseq-hydra-train, "
        "nnunetv2_train, maxtext*, t5x.train*, wandb agent, wandb sweep, optuna",
        (
            r"(?:yolo|mim|spacy|rasa|rllib) (?:\w+ )?train\b|composer +-+\w+",
            r"function_to_execute[ =]\w*train\w*\b",
            r"--[\w-]{0,40}epochs?\b|--lora[-_]alpha\b|--learning[-_]rate\b|--lr\b|--per[-_]device[-_]train|--do[-_]train\b",
            r"--train(?:ing)?(?:-|_)(?:batch|dir|data|file|files|iters|steps|path)|--gradient[-_]accum",
            r"--total[-_]timesteps|--max(?:-|_)(?:train[-_])?steps\b|--weight[-_]decay\b|--save[-_]interval\b",
            r"--resume[-_]from[-_]checkpoint|--global[-_]batch[-_]size\b",
            r"--(?:mode|task|job[-_]type)(?:=| )(?:train|finetune)|(?:max_)?epochs=\d|lr=[\d.]",
        ),
    ),
    BATCH: Commands(
        "* bench, * benchmark, * eval, * evaluate, * predict, * infer, * transcribe, * convert, * quantize, "
        "* preprocess, lm_eval, lm-eval, lighteval, opencompass, evalplus*, evalscope, vllm run-batch, "
        "sglang.bench*, genai-perf, aiperf, perf_analyzer, guidellm, trtexec, trtllm-build, trtllm-bench, nbody, "
        "vectoradd, vector-add, devicequery, bandwidthtest, nvbandwidth, gpu-burn, gpu_burn, dcgmi, dcgmproftester*, "
        "nccl-test*, nccl_test*, rccl-tests, osu_*, xhpl*, hpl*, hpcg*, stream_*, mdtest, fio, "
        "gmx*, lmp, lmp_*, namd*, pmemd*, vasp*, cp2k*, pw.x, relion*, openmm*, nextflow, snakemake, alphafold*, "
        "colabfold*, pbrun, ffmpeg, handbrakecli, blender, colmap, hashcat, img2dataset, pytest, ctest, "
        "tox, nvcc, papermill, nbconvert, jupyter execute, spark-submit, slurmd, optimum-cli export, llama-quantize, "
        "mlc_llm convert*, llamafactory-cli export, huggingface-cli upload, whisper, whisperx, demucs",
        (
            r"\w+_perf\b|vllm\.entrypoints\.\S*run_batch\b|celery [^\n;&|]{0,200}worker\b",
            r"yolo (?:\w+ )?(?:predict|val|export|benchmark|track)\b",
        ),
    ),
}
"""Programs, modules and options that do one thing only."""

OVERRIDES: Mapping[WorkloadType, Commands] = {
    BATCH: Commands(
        "",
        (
            r"--(?:eval|evaluate|evaluation|test|predict|prediction|infer|inference|val|validate|benchmark)[-_]only\b",
            r"--(?:mode|task|job[-_]type)(?:=| )(?:predict|infer\w*|eval\w*|test|score)\b",
            r"\A(?![\s\S]*--do[-_]train)[\s\S]*?--do[-_](?:predict|eval)\b",
        ),
    ),
    INTERACTIVE: Commands("", (r"\A(?:\S*(?:ba)?sh (?:-\w+ )*)?sleep +inf(?:inity)?\s*[\n;]\s*\S",)),
}
"""What turns the rest into something else: a training script that only predicts, one that is never reached."""

LAUNCHERS: Mapping[WorkloadType, Commands] = {
    TRAINING: Commands(
        "torchrun, torch.distributed.run, torch.distributed.launch, accelerate launch, accelerate-launch, deepspeed*, "
        "fleetrun, paddle.distributed.launch, colossalai run, lightning run, fabric run, msrun, oneflow.distributed*"
    ),
    BATCH: Commands("", (r"(?:mpirun|mpiexec|srun)\b(?![^\n;&|]{0,500}\b(?:python\d?|bash|sh|julia)\b)",)),
}
"""Starters of many processes: what they start tells more. MPI without Python runs a compiled program: a simulation."""

WAITING = Commands(
    "tail -f /dev/null, tail -nf /dev/null, sleep inf, sleep infinity, sshd, service ssh start, dropbear",
    (
        r"sleep +(?:\d{5,}|\d+d)\b",
        r"while +(?:true|:|\[ *1 *\]) *; *do +sleep",
        r"(?:ba)?sh *$|\A(?:\S*(?:ba)?sh (?:-\w+ )*)?sleep +\d{3,}[smh]?\s*\Z",
    ),
)
"""Commands that do nothing until a person comes in; they tell where nothing else of the workload does anything."""

DOZING = Commands(WAITING.phrases, (*WAITING.patterns, r"sleep +(?:\d{4}|\d+[hm])\b"))
"""The same of what doesn't end: there a long sleep waits too, or it would start again and again."""

CHECKS: Mapping[WorkloadType, Commands] = {BATCH: Commands("nvidia-smi, rocm-smi, clinfo, hl-smi, xpu-smi")}
"""A look at the GPUs, which most things begin with: it tells where nothing else is done, not even waiting."""

VARIABLES: Mapping[WorkloadType, Commands] = {
    TRAINING: Commands(
        "epochs, num_epochs, n_epochs, max_epochs, total_epochs, train_epochs, num_train_epochs, learning_rate, lr, "
        "max_steps, train_steps, num_train_steps, gradient_accumulation_steps, weight_decay"
    )
}
"""Names of environment variables that only a training program reads."""

NOISE = (
    r"(?:^|\s)#[^\n]*"
    r"|(?:(?<=[\n;&|({])|^|(?<=-c)|(?<=-ec)|(?<=-lc))[ \t]*(?:(?:then|do|sudo) +)?"
    r"(?:echo|printf|cd|mkdir|export|source|git|wget|curl|apt-get|apt|apk|yum|dnf|conda|pip3?|python3? -m pip|"
    r"uv pip|huggingface-cli (?:login|download)|"
    r"hf (?:auth|download)|aws s3|gsutil|gcloud|chmod|chown|cp|rm|ls|until|while !|tar|unzip|wandb login)\b[^\n;&|]*"
)
"""Comments and commands that only prepare: what they name isn't what runs."""

SCRIPT = (
    r"(?:(?:^|\s)-m\s+|function_to_execute[ =]|\stask-name\s)(?P<module>[a-z_][\w.-]*)"
    r"|(?<![\w.-])(?P<file>[\w.-]{1,120}?)\.(?:py|sh|ipynb|jl|r|lua)\b"
)
"""Where a script's or a module's name stands in a command."""
