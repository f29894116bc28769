"""Programs, modules, subcommands and options that do one thing only, in lower case. Data.

They are found anywhere in a command, also as a value: what is a word of some language, or a model's name, is no entry.
"""

from collections.abc import Mapping

from webhook.policy.classification.vocabulary.command_phrases import Commands
from webhook.policy.workloads.workload_types import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

PROGRAMS: Mapping[WorkloadType, Commands] = {
    INTERACTIVE: Commands(
        "jupyterhub-singleuser, start-notebook*, start-singleuser*, code-server, openvscode-server, rserver, theia, "
        "rstudio-server, marimo edit, coder agent, code tunnel, code serve-web, ttyd, gotty, zeppelin*, pvserver, "
        "polynote, ipykernel*, tmate, wetty, shellinaboxd, mosh-server, vscode-server, positron-server, "
        "fiftyone app, napari, vncserver, x11vnc, xvnc, kasmvnc*, novnc*, websockify, xrdp, selkies*, startxfce4, "
        "tigervnc*, xtigervnc*, xtightvnc*, x0vncserver, xpra, dcvserver, nxserver, startplasma*, startkde, "
        "startlxde, startlxqt, gnome-session*, mate-session, xfce4-session, sunshine *.conf, steam-headless, "
        "isaac-sim.*, runheadless*, comfyui*, comfy launch, invokeai-web, kohya_gui*, llamafactory-cli webui, "
        "swift web-ui, h2o-llmstudio*",
        (
            r"jupyter[- ]?(?:lab|notebook|server|hub-singleuser)?(?![-\w.]| +(?:nbconvert|execute|run|trust)\b)",
            r"(?:launch|main|entry_with_update|webui)\.py (?![^\n;&|]{0,300}--nowebui\b)[^\n;&|]{0,300}--listen\b",
        ),
    ),
    SERVING: Commands(
        # language models
        "* serve, * gpuserver, trtllm-serve, tensorrt_llm.commands.serve, sglang.launch_server*, sglang.srt*, "
        "tritonserver, "
        "text-generation-launcher, text-generation-server, text-embeddings-router, infinity_emb, infinity-emb, "
        "ollama run, llama-server, llama_cpp.server, llamafile*, openllm start, aphrodite run, mistralrs-server, "
        "candle-vllm, ktransformers*, mii.entrypoints*, gpustack start, tensorflow_model_server, torchserve, "
        "mlserver start, seldon-core-microservice, huggingfaceserver, koboldcpp*, lorax-launcher, dynamo run, "
        "dynamo.vllm*, dynamo.sglang*, dynamo.trtllm*, dynamo.frontend*, dynamo.mocker*, lightllm.server*, "
        "cog.server*, mindieservice_daemon, nim_server, nimlib*, kobold, local-ai, litellm, fastchat.serve*, "
        "xinference*, swift deploy, swift app, swift.cli.deploy, llamafactory-cli api, llamafactory-cli webchat, "
        # of any model
        "multi-model-server, inference server start, djl-serving, ovms, jina flow, jina executor, jina deployment, "
        "bert-serving-start, bentoml serve*, paddle_serving_server*, serve run, serve deploy, serve start, rasa run, "
        "clip-retrieval back, label-studio-ml start, monailabel start_server, milvus run, heavydb, omnisci_server, "
        # web servers and pages
        "uvicorn*, gunicorn*, hypercorn*, granian, waitress-serve, daphne -*, uwsgi, manage.py runserver, flask run, "
        "flask --app*, fastapi run, fastapi dev, litestar run, streamlit run, gradio*, chainlit run, marimo run, "
        "shiny run, solara run, voila *.ipynb, voila --*, "
        # speech, translation, documents, video
        "riva_server, start-riva*, whisper-server, wyoming-*, wyoming_*, wyoming.*, tts-server, "
        "whisperlivekit-server, marian-server, libretranslate, docling-serve*, mineru-api, mineru-gradio, "
        "mineru-*-server, jellyfin, frigate, mediamtx, go2rtc, ersatztv, plexmediaserver, deepstream-app",
        (r"vllm\.entrypoints\.(?!\S{0,40}run_batch)\S+", r"launch\.py [^\n;&|]{0,300}--nowebui\b|\Aserve(?=\s|\Z)"),
    ),
    TRAINING: Commands(
        "* train, * fit, * finetune, * pretrain, "
        # language models
        "tune run, autotrain, trl sft, trl dpo, trl grpo, trl ppo, trl kto, trl rloo, trl reward, trl vllm-serve, "
        "swift sft, swift pt, swift rlhf, swift rollout, torchtune*, litgpt finetune*, litgpt pretrain*, "
        "verl.trainer*, main_ppo, main_grpo, openrlhf*, ft_launcher, dlrover-run, horovodrun, maxtext*, t5x.train*, "
        "ludwig experiment, "
        # vision, speech, translation, robots
        "ns-train, fairseq-train, fairseq-hydra-train, onmt_train, t2t-trainer, lerobot-train, mlagents-learn, "
        "nnunet_train, nnunetv2_train, nndet_train, sleap-train, sheeprl, baselines.run, spinup.run, nequip-train, "
        "mace_run_train, spktrain, dp --pt train, "
        # many runs; many who learn one model
        "wandb agent, wandb sweep, optuna, nnictl create, flwr run, flower-supernode, flower-superexec, "
        "nvflare simulator, nvflare.private*, fx collaborator start",
        (
            r"(?:yolo|mim|spacy|rasa|rllib) (?:\w+ )?train\b|composer +-+\w+|yolo (?:\S+ )?mode=train\b",
            r"\Atrain(?=\s|\Z)",
            r"monai\.bundle run (?:train|[^\n;&|]{0,200}\btrain\w*\.(?:json|yaml))",
            r"function_to_execute[ =]\w*train\w*\b",
            (
                r"--(?:[\w-]{0,40}epochs?\b|lora[-_](?:alpha|dropout|r)\b|learning[-_]rate\b|lr\b|lr[-_]scheduler"
                r"|(?:per[-_]device|do)[-_]train|train(?:ing)?[-_](?:batch|csv|data|dir|files?|folder|iters|manifest|path|sets|stage|steps)"
                r"|total[-_]timesteps|max[-_](?:train[-_])?steps\b|weight[-_]decay\b|label[-_]smoothing\b|warmup[-_]ratio\b"
                r"|grad(?:ient)?[-_](?:accum|checkpointing)|max[-_]grad[-_]norm|global[-_]batch[-_]size\b|logging[-_]steps\b"
                r"|save[-_](?:interval|steps|strategy|total[-_]limit)\b|resume[-_]from[-_]checkpoint"
                r"|eval(?:uation)?[-_]strategy\b|(?:mode|task|job[-_]type|stage|phase|action)[= ](?:train|finetune)"
                r"|train(?:ing)?(?![\w=-])(?! +(?:false|no|0)\b)|is[-_]train(?:ing)?[= ](?:true|1)\b)"
            ),
            r"[\w.-]+=(?:(?<=epochs=)\d|(?<=trainer\.max_steps=)\d|(?<=lr=)(?<![a-z\d]lr=)[\d.])",
        ),
    ),
    BATCH: Commands(
        "* bench, * benchmark, * eval, * evaluate, * predict, * infer, * transcribe, * convert, * quantize, "
        "* preprocess, * validate, * simulate, * render, * tokenize, * ingest, "
        # evaluations
        "lm_eval, lm-eval, lmms_eval, lighteval, opencompass, evalplus*, evalscope, bigcode_eval*, helm-run, "
        "vlmeval*, alpaca_eval, fastchat.llm_judge*, swebench.harness*, lcb_runner*, nemo-evaluator*, trtllm-eval, "
        "olmes, garak, mteb run, deepeval test, lerobot-eval, sheeprl-eval, vllm run-batch, "
        # measurements of models, GPUs, networks, disks
        "sglang.bench*, genai-perf, aiperf, perf_analyzer, guidellm, llama-bench, llama-batched-bench, "
        "llama-perplexity, llama-imatrix, text-generation-benchmark, inference-benchmarker, inference-perf, "
        "vectordbbench, locust -*, k6 run, dlio_benchmark, mlpstorage, mlcr, mlperf_*, nbody, vectoradd, vector-add, "
        "devicequery, bandwidthtest, matrixmul*, p2pbandwidthlatencytest, nvbandwidth, gpu-burn, gpu_burn, "
        "gpu-fryer, dcgmi, dcgmproftester*, cuda_memtest, clpeak, mixbench*, babelstream*, hip-stream, cuda-stream, "
        "rvs -*, rocm-bandwidth-test, rocm_bandwidth_test, transferbench, rochpl*, rochpcg*, stress-ng, glmark2*, "
        "vkmark, phoronix-test-suite, nccl-test*, nccl_test*, rccl-tests, osu_*, ucx_perftest, xhpl*, hpl*, hpcg*, "
        "stream_*, mdtest, fio, gdsio, elbencho, sysbench, iperf*, "
        # molecules
        "gmx*, mdrun*, lmp, lmp_*, namd*, pmemd*, sander.mpi, charmm*, acemd*, tinker9, hoomd*, openmm*, vasp*, "
        "cp2k*, pw.x, ph.x, neb.x, nwchem*, qmcpack*, bigdft*, psi4, gpaw, abinit, dftb+, yambo, autodock*, "
        "vina --*, vina-gpu*, quickvina*, unidock, gnina, smina, diffdock*, alphafold*, colabfold*, openfold*, "
        "chai-lab fold, chai fold, esm-fold, omegafold, rosetta_scripts*, "
        # genomes, microscopes, scanners
        "pbrun, dorado basecaller, dorado duplex, dorado demux, guppy_*, bonito basecaller, medaka_*, deepvariant*, "
        "run_deepvariant*, run_clair3*, cellbender, mmseqs, foldseek, nextflow, snakemake, cwltool, relion*, "
        "motioncor*, gctf*, ctffind*, cryolo_*, totalsegmentator, hd-bet, recon-all, mri_synthseg, eddy_cuda*, "
        "probtrackx2_gpu, nnunet_predict, nnunetv2_p*, cellpose, suite2p, kilosort*, sleap-track, "
        # fluids, fields, earth, stars
        "xspecfem3d, xmeshfem3d, seissol*, wrf.exe, nekrs*, nrsmpi, pyfr run, su2_cfd, picongpu, warpx*, su3_rhmd*, "
        "starccm*, abaqus, ls-dyna*, comsol, ansys*, elmersolver*, wolframscript, lulesh*, minife*, "
        # pictures, video, sound
        "ffmpeg, handbrakecli, nvencc*, av1an, ab-av1, tdarr*, unmanic, realesrgan*, video2x, waifu2x*, "
        "rife-ncnn-vulkan, blender, hython, hbatch, mitsuba, pbrt, prman, redshiftcmdline, luxcoreconsole, "
        "deadlineworker, flamenco-worker, afrender, colmap, glomap, alicevision_*, meshroom_batch, "
        "densifypointcloud, ns-process-data, ns-render, ns-eval, ns-export, whisper, whisperx, whisper-cli, "
        "whisper-ctranslate2, whisper_timestamped, insanely-fast-whisper, demucs, spleeter separate, "
        "audio-separator, tts --*, marker_single, marker_chunk*, olmocr*, ocrmypdf, mineru -*, "
        # data and models made ready
        "img2dataset, video2dataset, clip-retrieval inference, autofaiss, nemo_curator*, datatrove*, dj-process, "
        "dj-analyze, dolma tag, dolma dedupe, dolma mix, dolma tokens, graphrag index, fairseq-preprocess, "
        "fairseq-generate, fairseq-eval-lm, onmt_translate, onmt_build_vocab, t2t-datagen, t2t-decoder, "
        "spark-submit, papermill, nbconvert, jupyter execute, trtexec, trtllm-build, trtllm-bench, "
        "tensorrt_llm.commands.build, polygraphy, optimum-cli export, llama-quantize, llmcompressor*, auto-round, "
        "auto_round, ct2-*, mergekit*, mlc_llm convert*, mlc_llm compile, litgpt convert*, litgpt generate, "
        "swift export, swift sample, llamafactory-cli export, huggingface-cli upload, hf upload, "
        # passwords, coins, spare time for science
        "hashcat, hashtopolis*, john --*, btcrecover*, aircrack-ng, xmrig*, ethminer, lolminer, nbminer, gminer, "
        "ccminer, teamredminer, phoenixminer, srbminer*, bzminer, nanominer, wildrig*, t-rex -*, cgminer, bfgminer, "
        "bladebit*, boinc, boinc_client, fahclient, fah-client, "
        # tests and work from a queue
        "pytest, unittest, nosetests, ctest, tox, nvcc, go test, cargo test, cargo bench, bazel test, slurmd, "
        "buildkite-agent start, runner.listener, rq worker, rqworker, dramatiq, huey_consumer*, taskiq worker",
        (
            r"\w+(?:_perf|foam)\b|(?!work)\w+bench\b|ib_(?:read|write|send|atomic)_(?:bw|lat)\b|vllm\.entrypoints\.\S*run_batch\b",
            r"--eval(?:uate)?(?![\w=-])(?! +(?:false|no|0)\b)|celery [^\n;&|]{0,200}worker\b",
            r"fluent +[23]d|matlab [^\n;&|]{0,80}-batch\b|(?<!-o )a\.out\b",
            r"yolo (?:\w+ )?(?:predict|val|export|benchmark|track)\b|yolo (?:\S+ )?mode=(?:predict|val|export|track)\b",
        ),
    ),
}
"""Of one text, several types may tell: which counts is in `guessing.py`."""
