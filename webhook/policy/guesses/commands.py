"""What a command or a script's place in one hints at, by pattern, in lower case. Data."""

import re
from collections.abc import Mapping

from webhook.policy.words import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

LONGEST = 4096
"""Characters of a text that are searched: an entrypoint script may be a megabyte."""

PROGRAMS: Mapping[WorkloadType, tuple[str, ...]] = {
    INTERACTIVE: (
        r"jupyter[- ]?(?:lab|notebook|server|hub-singleuser)?(?![-\w.]| +(?:nbconvert|execute|run|trust)\b)",
        r"(?:jupyterhub-singleuser|start-(?:notebook|singleuser)\S*|code-server|openvscode-server|rserver|theia)\b",
        r"(?:rstudio-server|marimo edit|coder agent|code (?:tunnel|serve-web)|ttyd|gotty|zeppelin|pvserver)\b",
        r"(?:vncserver|x11vnc|xvnc|kasmvnc\w*|novnc\S*|websockify|xrdp|selkies\S*|startxfce4)\b",
        r"(?:comfyui\S*|comfy launch|invokeai-web|kohya_gui\S*|llamafactory-cli webui)\b",
        r"(?:(?:launch|main)\.py [^\n;&|]{0,300}--listen)\b",
    ),
    SERVING: (
        r"(?:vllm serve|vllm\.entrypoints\.(?!\S{0,40}run_batch)\S+|trtllm-serve|tensorrt_llm\.commands\.serve)\b",
        r"(?:sglang\.(?:launch_server|srt)\S*|sglang serve|tritonserver|text-generation-(?:launcher|server))\b",
        r"(?:text-embeddings-router|infinity_emb|infinity-emb|ollama (?:serve|run)|llama-server|llama_cpp\.server)\b",
        r"(?:lmdeploy serve|mlc_llm serve|openllm (?:serve|start)|bentoml serve|aphrodite (?:run|serve)|tabby serve)\b",
        r"(?:tensorflow_model_server|torchserve|mlserver start|seldon-core-microservice|huggingfaceserver|koboldcpp)\b",
        r"(?:serve (?:run|deploy|start)|ray serve|uvicorn|gunicorn|hypercorn|granian|waitress-serve|flask run)\b",
        r"(?:fastapi (?:run|dev)|streamlit run|gradio|chainlit run|fastchat\.serve\S*|xinference\S*|lorax-launcher)\b",
        r"(?:dynamo (?:serve|run)|dynamo\.(?:vllm|sglang|trtllm|frontend|mocker)|lightllm\.server\S*|cog\.server\S*)\b",
        r"(?:mindieservice_daemon|riva_server|start-riva|milvus run|local-ai|litellm|nim_server|nimlib\S*)\b",
        r"\w[\w.-]* serve(?=\s|$)|(?:swift deploy|rasa run)\b",
        r"(?:kobold|jellyfin|frigate|whisper-server|wyoming-\w+|mediamtx|paddle_serving_server\S*)\b",
    ),
    TRAINING: (
        r"(?:axolotl (?:train|fetch|preprocess)|llamafactory-cli train|tune run|oumi train|ludwig train|autotrain)\b",
        r"(?:trl (?:sft|dpo|grpo|ppo|kto|rloo|reward|vllm-serve)|swift (?:sft|pt|rlhf)|xtuner train|torchtune\S*)\b",
        r"(?:litgpt (?:finetune|pretrain)\w*|nemo llm (?:pretrain|finetune)|verl\.trainer\S*)\b",
        r"(?:main_(?:ppo|grpo)|openrlhf\S*)\b",
        r"(?:ft_launcher|dlrover-run|horovodrun|composer +-+\w+|ns-train|fairseq-(?:hydra-)?train|nnunetv2_train)\b",
        r"(?:(?:yolo|mim|spacy|rasa|rllib) (?:\w+ )?train|maxtext\S*|t5x\.train\S*)\b",
        r"(?:function_to_execute[ =]\w*train\w*)\b",
        r"\w[\w.-]* (?:train|fit|finetune|pretrain)(?=\s|$)|wandb (?:agent|sweep)\b|optuna\b",
        r"--(?:num[-_])?(?:train[-_])?epochs?\b|--learning[-_]rate\b|--lr\b|--per[-_]device[-_]train|--do[-_]train\b",
        r"--train(?:ing)?(?:-|_)(?:batch|dir|data|file|files|iters|steps|path)|--gradient[-_]accum|--total[-_]timesteps",
        r"--max(?:-|_)(?:train[-_])?steps\b|--weight[-_]decay\b|--resume[-_]from[-_]checkpoint|--save[-_]interval\b",
        r"--global[-_]batch[-_]size\b|--(?:mode|task|job[-_]type)(?:=| )(?:train|finetune)",
        r"(?:max_)?epochs=\d|lr=[\d.]",
    ),
    BATCH: (
        r"(?:lm[-_]eval|lighteval|opencompass|evalplus\S*|evalscope|vllm (?:bench|run-batch)|sglang\.bench\w*)\b",
        r"(?:vllm\.entrypoints\.\S*run_batch|genai-perf|aiperf|perf_analyzer|guidellm)\b",
        r"(?:trtexec|trtllm-(?:build|bench))\b",
        r"(?:nbody|vector-?add|devicequery|bandwidthtest|nvbandwidth|gpu[-_]burn|dcgmi|dcgmproftester\d*|nvidia-smi)\b",
        r"(?:rocm-smi|\w+_perf|nccl[-_]tests?|rccl-tests|osu_\w+|xhpl\S*|hpl\S*|hpcg\S*|stream_\w+|mdtest|fio)\b",
        r"(?:gmx\w*|lmp(?:_\w+)?|namd\d*|pmemd\S*|vasp\w*|cp2k\S*|pw\.x|relion\w*|openmm\S*|nextflow|snakemake)\b",
        r"(?:alphafold\S*|colabfold\w*|boltz predict|pbrun|ffmpeg|handbrakecli|blender|colmap|hashcat|img2dataset)\b",
        r"(?:pytest|ctest|tox|papermill|nbconvert|jupyter execute|spark-submit|celery [^\n;&|]{0,200}worker|slurmd)\b",
        r"(?:yolo (?:\w+ )?(?:predict|val|export|benchmark|track)|optimum-cli export)\b",
        r"(?:llama-quantize|mlc_llm convert\w*)\b",
        r"(?:axolotl preprocess|llamafactory-cli export|huggingface-cli upload|whisperx?|demucs)\b",
        r"\w[\w.-]* (?:bench|benchmark|eval|evaluate|predict|infer|transcribe|convert|quantize|preprocess)(?=\s|$)",
        r"--(?:mode|task|job[-_]type)(?:=| )(?:predict|infer\w*|eval\w*|test|score)\b",
    ),
}
"""Programs, modules and options that do one thing only."""

LAUNCHERS: Mapping[WorkloadType, tuple[str, ...]] = {
    TRAINING: (
        r"(?:torchrun|torch\.distributed\.(?:run|launch)|accelerate launch|accelerate-launch|deepspeed|fleetrun)\b",
        r"(?:paddle\.distributed\.launch|colossalai run|lightning run|fabric run|msrun|oneflow\.distributed\S*)\b",
    ),
    BATCH: (r"(?:mpirun|mpiexec|srun)\b(?![^\n;&|]{0,500}\b(?:python\d?|bash|sh|julia)\b)",),
}
"""Starters of many processes: what they start tells more. MPI without Python runs a compiled program: a simulation."""

WAITING = (
    r"sleep +(?:inf(?:inity)?|\d{5,}|\d+d)\b",
    r"tail +-n?f +/dev/null|while +(?:true|:|\[ *1 *\]) *; *do +sleep",
    r"sshd\b|service +ssh +start|dropbear\b|(?:ba)?sh *$",
)
"""Commands that do nothing until a person comes in; they tell where nothing else of the workload does anything."""

DOZING = (*WAITING, r"sleep +(?:\d{4}|\d+[hm])\b")
"""The same of what doesn't end: there a long sleep waits too, or it would start again and again."""

NOISE = (
    r"(?:^|\s)#[^\n]*"
    r"|(?:(?<=[\n;&|({])|^|(?<=-c)|(?<=-ec)|(?<=-lc))[ \t]*(?:(?:then|do|sudo) +)?"
    r"(?:echo|printf|cd|mkdir|export|source|git|wget|curl|apt-get|apt|apk|yum|dnf|conda|pip3?|python3? -m pip|"
    r"uv pip|huggingface-cli (?:login|download)|"
    r"hf (?:auth|download)|aws s3|gsutil|gcloud|chmod|chown|cp|rm|ls|until|while !|tar|unzip|wandb login)\b[^\n;&|]*"
)
"""Comments and commands that only prepare: what they name isn't what runs."""

SCRIPT = (
    r"(?:(?:^|\s)-m\s+|function_to_execute[ =])(?P<module>[a-z_][\w.-]*)"
    r"|(?<![\w.-])(?P<file>[\w.-]{1,120}?)\.(?:py|sh|ipynb|jl|r|lua)\b"
)
"""Where a script's or a module's name stands in a command."""


def _together(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"(?<![\w.-])(?:" + "|".join(patterns) + ")", re.DOTALL)


PROGRAM_PATTERNS = {kind: _together(patterns) for kind, patterns in PROGRAMS.items()}
LAUNCHER_PATTERNS = {kind: _together(patterns) for kind, patterns in LAUNCHERS.items()}
WAITING_PATTERN, DOZING_PATTERN = _together(WAITING), _together(DOZING)
NOISE_PATTERN = re.compile(NOISE)
SCRIPT_PATTERN = re.compile(SCRIPT)
