"""Words of scripts and names with the type that they hint at, in lower case; a hyphen makes a pair. Data."""

from collections.abc import Mapping

from webhook.policy.workloads.workload_types import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType


def words_of(lines: Mapping[WorkloadType, str]) -> dict[str, WorkloadType]:
    """Each word of the lines with its type."""
    return {word: workload_type for workload_type, line in lines.items() for word in line.split()}


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


SCRIPT_WORDS = words_of(
    {
        TRAINING: (
            "train training trainer retrain finetune finetuner finetuning fine-tune fine-tuning pretrain pretraining "
            "sft dpo grpo ppo rlhf rloo kto orpo a2c sac dqn dreambooth distill distil lora qlora ddp fsdp hpo nas "
            "fit learner megatron tune hyperparameter hyperparam nanogpt entrenar treinar a3c ddpg trpo td3 maddpg "
            "mappo qmix muzero dreamerv3 reinforcement-learning dapo gspo rlvr simpo simclr byol swav "
            "and-train and-finetune prompt-tuning instruction-tuning prefix-tuning hyperparameter-tuning "
            "textual-inversion"
        ),
        SERVING: (
            "serve server serving api service webui app chatbot chat gradio streamlit endpoint start_server "
            "webapp webserver webservice websocket asgi wsgi web-demo handler"
        ),
        BATCH: (
            "eval evals evaluate evaluation evaluator eleuther benchmark benchmarks bench test tests preprocess "
            "preprocessing prep prepare dataprep convert converter export quantize quantization quant transcode "
            "caption captions captioning embed embeddings embedding encode score scoring label render index download "
            "tokenize tokenizer dedup filter etl resize extract transform ingest dataset data collect serialize "
            "tensorize feature features merge validate check simulate simulation process batch backfill judge "
            "annotate transcribe auto-tune autotune upscale crawl healthcheck smoke alphafold colabfold openfold "
            "boltz gromacs lammps rosettafold rfdiffusion proteinmpnn diffdock openmm md npt nvt "
            "mcmc montecarlo monte-carlo analyze analyse visualize visualise plot inspect "
            "verify postprocess postprocessing reconstruct scrape scraper crawler migrate "
            "populate ingestion backtest ptq training-data training-dataset fastsurfer clair3 deepvariant"
        ),
        INTERACTIVE: "jupyter jupyterlab ipykernel vnc novnc vscode rstudio",
    }
)
"""A script is called after what it does, verb first: the first word that tells decides."""

EXERCISES = _set(
    "mnist cifar imagenet clm mlm glue resnet unet segmentation emnist fmnist kmnist lenet dcgan wgan run-squad "
    "run-qa run-ner run-swag run-xnli autoencoder lstm word2vec xgboost lightgbm catboost"
)
"""What people train on, or train: a script that is called after nothing else trains."""

NAME_WORDS = words_of(
    {
        INTERACTIVE: (
            "jupyter jupyterlab jupyterhub notebook notebooks lab workspace workspaces devbox devpod ide vscode "
            "codeserver code-server vs-code dev-env dev-pod dev-box rstudio sandbox shell ssh sshd debug desktop "
            "workbench interactive comfyui diffusion-webui sd-webui terminal vnc marimo novnc kasm webtop invokeai "
            "fooocus swarmui kohya jumpbox bastion login devcontainer codespace codespaces devspace pycharm"
        ),
        SERVING: (
            "serve serving server servers service predictor api endpoint vllm sglang tgi triton tritonserver ollama "
            "tei reranker chat chatbot nim decode prefill backend frontend webui ui app bot assistant recommender "
            "whisper tts asr jellyfin milvus torchserve tfserve querynode deployer playground stt localai "
            "local-ai llamacpp llama-cpp lmdeploy koboldcpp xinference litellm gpustack tabby speaches kokoro "
            "libretranslate frigate plex emby immich photoprism nvr qdrant weaviate mlserver seldon "
            "bentoml webapp website model-deployment llm-deployment model-serving llm-d "
            "llama-stack llamastack function"
        ),
        TRAINING: (
            "train training trainer retrain retraining finetune finetuning finetuner fine-tune fine-tuning pretrain "
            "pretraining pretrainer sft dpo grpo ppo rlhf rl lora qlora tuning distill distillation fsdp ddp hpo "
            "dreambooth learner reinforcement-learning"
        ),
        BATCH: (
            "batch benchmark benchmarks bench perf eval evals evaluate evaluation evaluator test tests preprocess "
            "preprocessing prep prepdata dataprep etl convert converter conversion quantize quantization transcode "
            "transcoder transcoding caption captioning captioner scoring render renderer rendering export index "
            "indexing indexer download downloader burn stress validation healthcheck simulation simulate backfill "
            "processing postprocess extract extraction ingest ingestion dedup tokenize serializer serialize "
            "vector-add vectoradd nbody smoke ci runner gromacs lammps hpl "
            "nccl-test nccl-tests nccl-perf allreduce all-reduce folding docking verification "
            "nvidia-smi cuda-sample cuda-samples gpu-check sanity diagnostic diagnostics perftest loadtest loadgen "
            "analysis namd cp2k vasp openfoam relion parabricks hpcg basecaller basecalling colmap "
            "crawler scraper uploader merge tdarr unmanic fileflows miner mining ethminer lolminer xmrig hashcat boinc "
            "fah foldingathome training-data training-dataset"
        ),
    }
)
"""A workload's name ends in what it is: the last word that tells decides."""

SYSTEM_IMAGES = _set(
    "dcgm-exporter gpu-exporter nvidia-exporter metrics-exporter node-exporter nvidia-smi-exporter device-plugin "
    "device-metrics driver-installer driver-manager driver-daemonset feature-discovery mig-manager mig-parted "
    "dra-driver node-labeller container-toolkit operator-validator plugin-validator"
)
"""Parts of the cluster, as their images are called: no workloads, though they may ask for a GPU."""

METHODS = _set("sft dpo grpo ppo rlhf rl lora qlora fsdp ddp hpo")
"""How something is trained, or was: in the name of an evaluation or of an inference they tell nothing."""

ONE_OFF_VERBS = _set("infer predict embed generate transcribe translate summarize classify detect rerank")
"""First in a script's name they say what is done, and with what comes after: `predict_lora.py` trains nothing."""

ONE_OFF_TASKS = ONE_OFF_VERBS | _set(
    "inference inferencing prediction predictions embedding embeddings embedder generation transcription transcriber "
    "detection lora-inference lora-infer inference-lora infer-lora sft-inference inference-sft"
)
"""A pod so called serves if it never ends, and is batch if it ends."""
