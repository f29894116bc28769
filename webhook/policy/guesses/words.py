"""What single words of scripts, names and images hint at, in lower case. Data."""

from collections.abc import Mapping

from webhook.policy.words import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType


def _words(lines: Mapping[WorkloadType, str]) -> dict[str, WorkloadType]:
    return {word: kind for kind, line in lines.items() for word in line.split()}


SCRIPT_WORDS = _words(
    {
        TRAINING: (
            "train training trainer retrain finetune finetuner finetuning fine-tune fine-tuning pretrain pretraining "
            "sft dpo grpo ppo rlhf rloo kto orpo a2c sac dqn dreambooth distill distil lora qlora ddp fsdp hpo nas "
            "fit learner megatron tune hyperparameter hyperparam nanogpt entrenar treinar"
        ),
        SERVING: "serve server serving api service webui app chatbot chat gradio streamlit endpoint start_server",
        BATCH: (
            "eval evals evaluate evaluation evaluator eleuther benchmark benchmarks bench test tests preprocess "
            "preprocessing prep prepare dataprep convert converter export quantize quantization quant transcode "
            "caption captions captioning embed embeddings embedding encode score scoring label render index download "
            "tokenize tokenizer dedup filter etl resize extract transform ingest dataset data collect serialize "
            "tensorize feature features merge validate check simulate simulation process batch backfill judge "
            "annotate transcribe auto-tune autotune upscale crawl healthcheck smoke alphafold colabfold openfold "
            "boltz gromacs lammps"
        ),
    }
)
"""A script is called after what it does, verb first: the first word that tells decides."""

EXERCISES = frozenset(["mnist", "cifar", "imagenet", "clm", "mlm", "glue", "resnet", "unet", "segmentation"])
"""What people train on, or train: a script that is called after nothing else trains."""

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
            "vector-add vectoradd nbody smoke ci runner gromacs lammps hpl "
            "nccl-test nccl-tests nccl-perf allreduce all-reduce folding docking verification"
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
            "kasmweb desktop webtop coder codercom devcontainer marimo zeppelin theia gitpod steam retroarch comfyui "
            "invokeai fooocus automatic1111 sshd cuda-ssh"
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
            "weaviate qdrant immich nemo-retriever nemo-microservices"
        ),
        TRAINING: (
            "axolotl axolotlai llamafactory llama-factory unsloth verl openrlhf trl torchtune megatron "
            "training trainer "
            "train finetune finetuner finetuning fine-tune fine-tuning pretrain pretraining horovod "
            "dlrover "
            "autotrain maxtext dreambooth cleanrl rllib grpo sft nemo"
        ),
    }
)
"""Words of an image's path and tag, its registry left out. Types come in this order where several are named."""
