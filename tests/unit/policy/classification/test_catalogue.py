"""Entries of catalogues of software for GPUs, as their own pages start them; and words that look like such entries."""

import pytest

from tests.builders import a_deployment, a_pod
from webhook.policy.classification.classify import classify
from webhook.policy.workloads.kind_table import BUILT_IN

COMMANDS = {
    "python -m lerobot.scripts.train --policy.type=act": "training",
    "lerobot-train --dataset.repo_id=me/pick": "training",
    "yolo task=detect mode=train model=yolo11n.pt data=coco8.yaml": "training",
    "swift rollout --model Qwen/Qwen2.5-7B-Instruct": "training",
    "train": "training",  # SageMaker's convention: the image knows the rest
    "python -m monai.bundle run --config_file configs/train.json": "training",
    "python -m paddle.distributed.launch --gpus 0,1 main.py": "training",
    "python main.py experiment=base trainer.max_epochs=10": "training",
    "conda run -n rl python train.py": "training",
    "python main.py --train --gpu 0": "training",
    "python main.py --phase train": "training",
    "python xgboost_gpu.py": "training",
    "llamafactory-cli api qwen.yaml": "serving",
    "serve": "serving",
    "mistralrs-server --port 1234 plain -m microsoft/phi-4": "serving",
    "python -m wyoming_faster_whisper --model large-v3": "serving",
    "daphne -b 0.0.0.0 -p 8000 site.asgi:application": "serving",
    "python manage.py runserver 0.0.0.0:8000": "serving",
    "python -u rp_handler.py": "serving",
    "docling-serve run --enable-ui": "serving",
    "deepstream-app -c store.txt": "serving",
    "mpirun -np 8 simpleFoam -parallel": "batch",
    "mpirun -np 4 python -m pyfr run -b cuda mesh.pyfrm case.ini": "batch",
    "dorado basecaller hac pod5/": "batch",
    "nnUNetv2_predict -i in -o out -d 4 -c 3d_fullres": "batch",
    "llama-bench -m model.gguf": "batch",
    "mergekit-yaml merge.yaml out": "batch",
    "hython render.py": "batch",
    "xmrig --cuda -o pool:3333": "batch",
    "john --format=nt hashes.txt": "batch",
    "ib_write_bw -d mlx5_0 --use_cuda=0": "batch",
    "matlab -nodisplay -batch simulate": "batch",
    "rq worker --url redis://queue high": "batch",
    "nvcc pi.cu && ./a.out": "batch",
    'python -c "import torch; print(torch.cuda.is_available())"': "batch",
    "python plot_training_curves.py": "batch",
    "python main.py --eval --resume vit.pth": "batch",
    "python generate_training_data.py": "batch",
    "./isaac-sim.streaming.sh --allow-root": "interactive",
    "bash start_vnc.sh": "interactive",
    "fiftyone app launch": "interactive",
    "swift web-ui --lang en": "interactive",
    # traps
    "/opt/conda/bin/python /code/train.py": "training",  # a folder is no program
    "/opt/conda/bin/python -m pip install kilosort && sleep infinity": "interactive",  # what is installed does not run
    "python ask.py --url http://jupyter:8888": None,  # another's address
    "uv run https://example.com/trl/scripts/sft.py": "training",
    "./run --color dorado --style t-rex": None,
    "python lora_inference.py": "serving",
    "python -m tool --optimizer-report daphne": None,
    "python strain_gauge.py --train-car 7 --trainee me --evaluator x": None,
    "python main.py --train false": None,
    "python train_gaussians.py --eval": "training",
    "python lstm_api.py": "serving",
    "python embed_api.py": "serving",
    "python predict_lora.py": "serving",  # a bare pod goes on for ever
    "python train_detection.py": "training",
    "python run.py --do_eval --num_train_epochs=3": "training",
    "python run.py --do_eval --output_dir=/data": "batch",
    "nvidia-smi; python main.py": None,
    "nvidia-smi -L": "batch",
    "nixlbench --etcd_endpoints http://etcd:2379 && sleep infinity": "batch",
    "start workbench": None,
    "python trainable_parameters.py": None,
    "vllm-router --port 80": None,
}


@pytest.mark.parametrize(("command", "kind"), COMMANDS.items())
def test_a_program_tells_what_it_does(command: str, kind: str | None) -> None:
    found = classify(a_pod("x").running(*command.split()).asking().view(), (), BUILT_IN)
    assert (found and found.type) == kind


IMAGES = {
    "nvcr.io/nvidia/nemo:25.04": "training",
    "nvcr.io/nvidia/nemo-curator:25.09": "batch",
    "nvcr.io/nvidia/clara/clara-parabricks:4.5.1-1": "batch",
    "nvcr.io/hpc/quantum_espresso:qe-7.3.1": "batch",
    "nvcr.io/hpc/namd:3.0": "batch",
    "nvcr.io/nvidia/cuopt/cuopt:25.8.0-cuda12.8-py312": "serving",
    "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.5.0": "serving",
    "nvcr.io/nvidia/deepstream:8.0-triton-multiarch": "serving",
    "nvcr.io/nvidia/dli/dli-nano-ai:v2.0.2": "interactive",
    "rocm/pytorch-training:v25.8": "training",
    "rocm/primus:v25.9": "training",
    "rocm/sgl-dev:v0.5.3-rocm700": "serving",
    "amdih/rochpl:6.0.amd0": "batch",
    "stablebaselines/rl-baselines3-zoo:latest": "training",
    "mosaicml/llm-foundry:2.7.0_cu128": "training",
    "flwr/supernode:1.20.0": "training",
    "nanoporetech/dorado:shac": "batch",
    "opendronemap/odm:gpu": "batch",
    "opendronemap/nodeodm:gpu": "serving",
    "opea/dataprep:1.3": "serving",
    "heavyai/heavyai-ee-cuda:latest": "serving",
    "lscr.io/linuxserver/blender:latest": "interactive",
    "linuxserver/ffmpeg:latest": "batch",
    "ghcr.io/games-on-whales/wolf:stable": "interactive",
    "lizardbyte/sunshine:latest-ubuntu-24.04": "interactive",
    "public.ecr.aws/sagemaker/sagemaker-distribution:3-gpu": "interactive",
    "ghcr.io/ai-dock/stable-diffusion-webui:latest": "interactive",
    "quay.io/go-skynet/local-ai:v2.29.0-cublas-cuda12": "serving",
    "elyra/kernel-tf-gpu-py:3.2.3": "interactive",
    "tiangolo/uvicorn-gunicorn-fastapi:python3.11": "serving",
    "nvcr.io/nvidia/k8s/dcgm-exporter:3.3.6-3.4.2-ubuntu22.04": None,  # a part of the cluster
    "nvcr.io/nvidia/k8s-device-plugin:v0.17.4": None,
    # traps
    "registry.example.com/team/vllm-dgx-spark:1": "serving",  # the machine, not the engine
    "registry.example.com/weather/rainbow:1": None,
    "registry.example.com/vision/steamboat:1": None,
    "registry.example.com/constraint/solver:1": None,
    "miner.example.com/team/model:1": None,  # a registry's name
}


@pytest.mark.parametrize(("image", "kind"), IMAGES.items())
def test_an_image_tells_what_is_packed_in_it(image: str, kind: str | None) -> None:
    pod = a_pod("x").asking(image=image).view()
    found = classify(pod, [a_deployment(name="x").view()], BUILT_IN)
    assert (found and found.type) == kind


NAMES = {
    "ethereum-miner": "batch",
    "nvidia-smi": "batch",
    "slurm-login": "interactive",
    "adversarial-robustness-toolbox": None,
    "libretranslate": "serving",
    "lora-inference": "serving",
    "mmlu-benchmark-lora": "batch",
    "dpo-model-eval-ppo": "batch",
    "make-training-data": "batch",
    "cartpole-reinforcement-learning": "training",
    "nanogpt-api": "serving",
    "mistral-orpo-beta": None,  # a model, served as likely as learned
    "minerva": None,
}


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_a_name_ends_in_what_the_software_is(name: str, kind: str | None) -> None:
    found = classify(a_pod(name).running("./run").asking().view(), (), BUILT_IN)
    assert (found and found.type) == kind


@pytest.mark.parametrize(
    ("port", "kind"), [(47989, "interactive"), (2718, "interactive"), (6818, None), (3003, "serving")]
)
def test_a_port_of_a_screen_or_a_notebook_is_a_persons(port: int, kind: str | None) -> None:
    pod = a_pod("x").running("./run").asking(ports=[{"containerPort": port}])
    found = classify(pod.view(), [a_deployment(name="x").view()], BUILT_IN)
    assert (found and found.type) == kind
