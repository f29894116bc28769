"""What a command, a script's name, an image, a name or a port hints at; weak evidence, called a guess. Data.

Commands are searched by pattern, everything else is cut into words. All of it is compared in lower case.
"""

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


def _words(lines: Mapping[WorkloadType, str]) -> dict[str, WorkloadType]:
    return {word: kind for kind, line in lines.items() for word in line.split()}


SCRIPT_WORDS = _words(
    {
        TRAINING: (
            "train training trainer retrain finetune finetuner finetuning fine-tune fine-tuning pretrain pretraining "
            "sft dpo grpo ppo rlhf rloo kto orpo a2c sac dqn dreambooth distill distil lora qlora ddp fsdp hpo nas "
            "fit learner megatron tune hyperparameter hyperparam mnist cifar imagenet clm mlm glue nanogpt"
        ),
        SERVING: "serve server serving api service webui app chatbot chat gradio streamlit endpoint start_server",
        BATCH: (
            "eval evals evaluate evaluation evaluator eleuther benchmark benchmarks bench test tests preprocess "
            "preprocessing prep prepare dataprep convert converter export quantize quantization quant transcode "
            "caption captions captioning embed embeddings embedding encode score scoring label render index download "
            "tokenize tokenizer dedup filter etl resize extract transform ingest dataset data collect serialize "
            "tensorize merge validate check simulate simulation process batch backfill judge annotate transcribe "
            "upscale crawl healthcheck smoke alphafold colabfold openfold boltz gromacs lammps"
        ),
    }
)
"""A script is called after what it does, verb first: the first word that tells decides."""

NAME_WORDS = _words(
    {
        INTERACTIVE: (
            "jupyter jupyterlab jupyterhub notebook notebooks lab workspace workspaces devbox devpod ide vscode "
            "codeserver code-server vs-code dev-env dev-pod dev-box rstudio sandbox shell ssh sshd debug desktop "
            "workbench interactive comfyui terminal vnc marimo"
        ),
        SERVING: (
            "serve serving server servers service predictor api endpoint vllm sglang tgi triton tritonserver ollama "
            "tei reranker chat chatbot nim decode prefill backend frontend webui ui app bot assistant recommender "
            "whisper tts asr jellyfin milvus torchserve tfserve querynode deployer playground"
        ),
        TRAINING: (
            "train training trainer retrain retraining finetune finetuning finetuner fine-tune fine-tuning pretrain "
            "pretraining pretrainer sft dpo grpo ppo rlhf rl lora qlora tuning distill distillation fsdp ddp hpo "
            "dreambooth learner"
        ),
        BATCH: (
            "batch benchmark benchmarks bench perf eval evals evaluate evaluation evaluator test tests preprocess "
            "preprocessing prep prepdata dataprep etl convert converter conversion quantize quantization transcode "
            "transcoder transcoding caption captioning captioner scoring render renderer rendering export index "
            "indexing indexer download downloader burn stress validation healthcheck simulation simulate backfill "
            "processing postprocess extract extraction ingest ingestion dedup tokenize serializer serialize "
            "vector-add vectoradd nbody smoke ci runner gromacs lammps hpl nccl folding docking verification"
        ),
    }
)
"""A workload's name ends in what it is: the last word that tells decides."""

ERRANDS = frozenset(
    [
        "inference",
        "infer",
        "predict",
        "prediction",
        "predictions",
        "embed",
        "embedding",
        "embeddings",
        "embedder",
        "generate",
        "generation",
        "transcribe",
        "transcription",
        "classify",
        "detect",
        "detection",
        "rerank",
    ]
)
"""What serves where it goes on for ever, and is batch where it ends."""

IMAGE_WORDS = _words(
    {
        INTERACTIVE: (
            "jupyter jupyterlab notebook notebooks codeserver code-server vscode openvscode rstudio ml-verse kasm "
            "kasmweb desktop webtop coder codercom devcontainer marimo zeppelin theia gitpod comfyui invokeai fooocus "
            "automatic1111 sshd cuda-ssh"
        ),
        BATCH: (
            "cuda-sample cuda-samples nbody vectoradd vector-add gpu-burn gpuburn nccl-tests nccl-test nccltest rccl "
            "nvbandwidth dcgm benchmark benchmarks bench eval evals evaluator evaluation lm-eval lm-harness "
            "hpc-benchmarks hpl hpcg gromacs lammps namd amber relion parabricks alphafold openfold colabfold ffmpeg "
            "foldingathome fah blender handbrake tdarr spark caption captioner preprocess dataprep etl converter "
            "transcoder slurmd celery gitlab-runner llm-compressor mpi-pi"
        ),
        SERVING: (
            "vllm sglang tgi tritonserver ollama llama-cpp llama-server infinity tei text-embeddings text-generation "
            "torchserve serving serve server mlserver lmdeploy nim inference predictor milvus milvusdb "
            "whisper speaches "
            "riva jellyfin plex emby frigate localai xinference tabby tabbyml openllm bentoml lorax "
            "mindie tensorrt-llm "
            "trtllm kserve huggingfaceserver ray-llm aphrodite koboldcpp fastchat api rtp-llm llm-d openai basaran "
            "weaviate qdrant nemo-retriever nemo-microservices"
        ),
        TRAINING: (
            "axolotl axolotlai llamafactory llama-factory unsloth verl openrlhf trl torchtune megatron "
            "training trainer "
            "train finetune finetuner finetuning fine-tune fine-tuning pretrain pretraining horovod "
            "mnist cifar10 dlrover "
            "autotrain maxtext dreambooth cleanrl rllib grpo sft nemo"
        ),
    }
)
"""Words of an image's path and tag, its registry left out. Types come in this order where several are named."""

PORTS = {
    8888: INTERACTIVE, 8787: INTERACTIVE, 5901: INTERACTIVE, 6901: INTERACTIVE, 6080: INTERACTIVE, 8188: INTERACTIVE,
    8000: SERVING, 8001: SERVING, 8500: SERVING, 8501: SERVING, 11434: SERVING, 30000: SERVING, 7860: SERVING,
}  # fmt: skip
"""Default ports: Jupyter, RStudio, VNC, ComfyUI; Triton, vLLM, TF Serving, Ollama, SGLang, Gradio."""

RENDEZVOUS_PORTS = frozenset({22, 2222, 1234, 3389, 6379, 8265, 8786, 8787, 10001, 23456, 29400, 29500})
"""Ports by which the processes of one workload find each other: nobody waits behind them for answers."""


def _together(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"(?<![\w.-])(?:" + "|".join(patterns) + ")", re.DOTALL)


PROGRAM_PATTERNS = {kind: _together(patterns) for kind, patterns in PROGRAMS.items()}
LAUNCHER_PATTERNS = {kind: _together(patterns) for kind, patterns in LAUNCHERS.items()}
WAITING_PATTERN, DOZING_PATTERN = _together(WAITING), _together(DOZING)
NOISE_PATTERN = re.compile(NOISE)
SCRIPT_PATTERN = re.compile(SCRIPT)
