"""Words of images with the type that they hint at, in lower case; a hyphen makes a pair (owner and name). Data.

Owners and tags are words of an image as well: what is also a person's name, a version's or a place's is no entry.
"""

from webhook.policy.classification.vocabulary.name_words import words_of
from webhook.policy.workloads.workload_types import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

IMAGE_WORDS = words_of(
    {
        INTERACTIVE: (
            # notebooks, editors, desktops
            "jupyter jupyterlab notebook notebooks codeserver code-server vscode openvscode rstudio ml-verse kasm "
            "kasmweb desktop webtop coder codercom devcontainer marimo zeppelin theia gitpod sshd cuda-ssh "
            "singleuser workbench sagemaker-distribution colab-images polynote deepnote cocalc ml-workspace "
            "rocker-ml rocker-tidyverse codespaces devcontainers devpod devspace pycharm cloud-workstations "
            "universal-developer runpod-pytorch runpod-tensorflow fiftyone napari chimerax pvserver vnc novnc "
            "turbovnc xfce xfce4 lxde lxqt xrdp dcv elyra-kernel x2go nomachine xpra selkies nvidia-dli ai-dock "
            "aidockorg "
            # games and streamed screens
            "steam retroarch lutris on-whales lizardbyte pixel-streaming pixelstreaming linuxserver-blender "
            "linuxserver-kdenlive linuxserver-freecad linuxserver-darktable linuxserver-digikam linuxserver-krita "
            "linuxserver-gimp linuxserver-steamos linuxserver-orcaslicer linuxserver-bambustudio "
            "linuxserver-chromium linuxserver-firefox linuxserver-rpcs3 "
            # studios for pictures and models
            "comfyui diffusion-webui sd-webui invokeai fooocus automatic1111 a1111 sdnext swarmui stableswarmui kohya "
            "fluxgym onetrainer wan2gp easydiffusion easy-diffusion llmstudio llm-studio transformerlab"
        ),
        BATCH: (
            # measurements and checks
            "cuda-sample cuda-samples nbody vectoradd vector-add gpu-burn gpuburn nccl-tests nccl-test nccltest rccl "
            "nvbandwidth dcgm dcgmproftester benchmark benchmarks bench eval evals evaluator evaluation lm-eval "
            "lm-harness hpc-benchmarks hpl hpcg rochpl rochpcg babelstream perftest gpu-fryer gpu-stress stress-ng "
            "iperf sysbench phoronix guidellm genai-perf aiperf inference-perf inference-benchmarker llmperf "
            "lighteval opencompass evalplus swebench swe-bench healthcheck gpu-check nemo-evaluator mpi-pi "
            # molecules, genomes, microscopes
            "gromacs lammps namd amber relion parabricks alphafold openfold colabfold cp2k vasp quantum-espresso "
            "quantumespresso nwchem gamess bigdft qmcpack openmm hoomd autodock gnina diffdock rosettafold "
            "rfdiffusion proteinmpnn tinker9 deepvariant clair3 dorado nanoporetech ontresearch cellbender motioncor "
            "cistem eman2 nf-core biocontainers nextflow snakemake totalsegmentator fastsurfer freesurfer fmriprep "
            "qsiprep cellpose kilosort "
            # fluids, fields, earth, stars
            "openfoam nekrs nek5000 pyfr specfem3d seissol picongpu warpx milc lulesh minife "
            # pictures, video, sound
            "ffmpeg blender handbrake tdarr unmanic fileflows caption captioner transcoder transcode transcoding "
            "video2x realesrgan real-esrgan waifu2x demucs spleeter ocrmypdf olmocr colmap glomap openmvs meshroom "
            "alicevision opendronemap-odm sheepit renderman renderer "
            # data and models made ready, work from a queue
            "apache-spark bitnami-spark spark-rapids spark-py pyspark preprocess dataprep etl converter slurmd "
            "celery gitlab-runner actions-runner github-runner buildkite jenkins nemo-curator datatrove data-juicer "
            "datajuicer img2dataset crawler scraper downloader batch llm-compressor llmcompressor mergekit autoawq "
            "autogptq quantize quantizer quantization "
            # spare time for science, coins, passwords
            "foldingathome folding fah boinc einsteinathome xmrig lolminer nbminer gminer teamredminer ethminer "
            "phoenixminer ccminer t-rex trex srbminer bzminer nanominer nicehash cpuminer miner hashcat hashtopolis "
            "bladebit"
        ),
        SERVING: (
            # language models
            "vllm sglang sgl-dev tgi tritonserver ollama llama-cpp llamacpp llama-server llamafile infinity tei "
            "text-embeddings text-generation torchserve serving serve server mlserver lmdeploy nim inference "
            "predictor localai local-ai xinference tabby tabbyml openllm bentoml lorax mindie tensorrt-llm trtllm "
            "kserve huggingfaceserver ray-llm rayllm aphrodite koboldcpp fastchat api rtp-llm llm-d openai basaran "
            "ai-dynamo lightllm ktransformers mistral-rs mistralrs tabbyapi exllamav2 ramalama gpustack oobabooga "
            "litellm kubeai fauxpilot refact h2ogpt open-webui anythingllm anything-llm khoj privategpt private-gpt "
            "localgpt opea opea-dataprep ragflow nemo-retriever nemo-microservices nemo-guardrails nemo-deploy "
            "nv-ingest "
            # of any model
            "seldon seldonio kfserving ovms mosec jinaai runpod-worker as-service microservice backend webui web-ui "
            "chatbot chat gradio streamlit fastapi endpoint predictors cuopt audio2face grobid monailabel nodeodm "
            "deepstream "
            # speech and translation
            "whisper speaches riva wyoming linuxserver-piper kokoro openedai xtts coqui alltalk fish-speech "
            "fishaudio tts asr stt funasr sensevoice sherpa-onnx whisperlive whisperlivekit libretranslate "
            "gpt-sovits cosyvoice "
            # vectors and ranks, databases
            "embedder embeddings embedding reranker rerank milvus milvusdb weaviate semitechnologies qdrant marqo "
            "vald chromadb heavydb heavyai omnisci kinetica postgresml "
            # films, photos, cameras
            "jellyfin plex emby immich photoprism librephotos ersatztv tunarr frigate scrypted viseron zoneminder "
            "deepstack codeproject compreface mediamtx go2rtc owncast tvheadend channels-dvr nextcloud stashapp"
        ),
        TRAINING: (
            "axolotl axolotlai llamafactory llama-factory unsloth verl verlai openrlhf trl torchtune megatron "
            "training trainer train finetune finetuner finetuning fine-tune fine-tuning pretrain pretraining horovod "
            "dlrover torchtitan nanotron nanogpt gpt-neox gptneox llm-foundry mosaicml-composer open-instruct "
            "rocm-primus slimerl skyrl autotrain maxtext levanter axlearn paxml dreambooth sd-scripts simpletuner "
            "musubi-tuner cleanrl rllib baselines3 stablebaselines nvflare openfl flwr-supernode hyperpod-recipes "
            "hf-tuning grpo sft rlhf rlvr qlora ddp fsdp nemo"
        ),
    }
)
"""Words of an image's path and tag, its registry left out. Types come in this order where several are named."""
