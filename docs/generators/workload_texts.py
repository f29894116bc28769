"""The sentences of docs/workloads.md and docs/workload-words.md between their tables and lists."""

WHY = """\
Why: where nobody named a tier, the type of a workload decides it: training, serving, batch or interactive. This page
says how gpu-tiers finds the type, and what it knows of each kind."""

ORDER = """\
## How the type is found

The first of these that says something counts:

1. **The kind.** The nearest owner that proves a type, by its kind (a PyTorchJob trains) or by a field (a KAITO
   Workspace with `tuning` trains). Some kinds say "unless it runs something else": then a guess that says another type
   comes before the kind.
2. **A label** that only pods of one type have. An operator writes it ([by API group](#kinds-by-api-group)), or a chart
   or a spawner does ([without a kind](#labels-without-a-kind)).
3. **The usual use** of the outermost owner, unless a guess says another type: a Job, a JobSet, a RayCluster or an
   MPIJob starts any program, and is usually one thing. A Job with more Indexed completions than run at once is usually
   batch, also in a JobSet: its pods don't wait for one another.
4. **A guess** from what the workload runs, its image, its name or its ports ([guesses](#guesses)).

The first two are proof, so a claim against them can be refused (`allowedTiersByType`); so can one against a guess that
shows what runs. The usual use chooses a tier and forbids nothing. A guess that only hints may lower the tier but not
raise it, unless the policy says `raiseBy: Hinted`. Evidence that is too weak for the tier brings no checkpoint hook
either. [What each may do, and why](decisions/evidence.md).

If nothing tells the type, the default tier of the tenant, of the namespace or of the policy applies:
[which tier a pod gets](policy.md#which-tier-a-pod-gets)."""

KINDS = """\
## Kinds from A to Z

Search this page for a kind. Its API group leads to its pod templates and labels.

- **training** (or another type alone): the kind proves the type.
- **training, unless it runs something else**: the kind proves the type, but a guess that says another type wins.
- **usually batch**: the kind is a general launcher. The usual use says the type, unless a guess says another one. A
  hint that would raise the tier above that of the usual use does not count for the tier.
- **told by what runs in it**: the kind says nothing of the type, but a label or a guess may."""

UNLISTED = """\
## A kind that is not listed

Its pods get a tier too. Their type comes from a label or a guess, and the names of the owner's kind and API
group count in that guess (TrainJob, inference.example.com). The object itself is not checked when it is applied.

`gpu-tiers review -f` shows what happens to such an object, as far as its shape tells: its pod templates, its containers
and the whole objects in it. [A row in the policy](policy.md#kinds-of-your-own) makes the kind known. Kinds whose
project has ended [need one too](decisions/dead-kinds.md)."""

LABELS = """\
## Labels without a kind

Charts, spawners and pipelines write these labels on the pods that they make. Where the type stands alone, the label is
proof. "Usually" is the usual use of what writes the label."""

GUESSES = """\
## Guesses

A guess is made from these sources. [Words behind a guess](workload-words.md) lists what each one knows.

| source | grade | what is looked at |
| --- | --- | --- |
| command | shown | commands, arguments and the scripts in them: programs, subcommands, options, names of scripts |
| variable | shown | the names of environment variables, and of those that a shell sets in a command |
| image | shown | the words of its path, else of its tag; only of containers that ask for devices, if any does |
| readiness probe | shown | a path as model servers have it: `/v1/…`, `/health`, `/ready`, `/generate`, `/predict` |
| name and port | shown | a name or an unlisted kind that says serving, of what declares a port or a readiness probe |
| names | shown | what the whole is called and what its container is called, where both say training |
| name | hinted | of the owners, the outermost first, of the pod, its app labels, containers, an unlisted API group |
| port | hinted | declared ports that programs are known by |
| service account or variable | hinted | a program's name, of a variable in its first word: `VLLM_USE_V1` |

Sources that show are asked before sources that hint, so a name or a port takes nothing from what runs. Among sources of
one grade the first that says something counts, in the order in which [the kind's line](#kinds-by-api-group) names them.
For all other pods that order is: command, variable, image, name and port, names, readiness probe; then the kind of an
owner that is not listed, name, port, any port or readiness probe at which others may ask (serving), and what the
service account and the variables are called after. A pod without an owner whose `restartPolicy` is `Never` or
`OnFailure` is usually batch, as a Job is; where it has no command, that is a hint.

- In a command, a program, a subcommand, an option or the name of a script counts more than a launcher (`torchrun`), a
  launcher more than a command that waits (`sleep infinity`), and that more than a look at the GPUs (`nvidia-smi`).
- What only prepares (`cd`, `pip install`, `git clone`) is left out of a command.
- A command that ends in `&` counts only if the shell then waits or sleeps. The server of `vllm serve m & … python
  pipeline.py` goes when the pipeline ends, so as a Job that is batch.
- A Python script before `sleep infinity` is the work; what sleeps afterwards waits for nobody.
- `python app.py`, `main.py` and `server.py` may do anything and tell nothing.
- Where the program is not known, its second word is read as a script's name if it says training or batch: a wrapper
  starts it (`runcmd train_unet`).
- An image for notebooks or studios tells nothing where its command is a Python script of another name: `jupyterlab`
  with `python report.py` is what the script is.
- Where a workload runs several things at once, interactive comes before training, training before serving, and serving
  before batch. Where it is made to end, as a Job is, batch comes before serving.
- What is made to end is not serving by its variables, its image or its name alone. In a JobSet, name and image
  together say serving.
- A guess says whose name it quotes. In an API group `batch`, `apps` and the like tell nothing, because many a group is
  called after one of Kubernetes' own.
- Of the name of a PyTorchJob and its like only a word of batch counts, such as `eval` or `benchmark`.
- The containers of a gang are read as one: a worker that waits for its launcher is what the launcher is.
- Upper and lower case are the same, and of a command the first {longest:,} characters are read."""

GROUPS = """\
## Kinds by API group

Each line says what tells the type and which labels the operator puts on the pods. Below it stand the paths of the pod
templates, `*` being each list item or map value, and how many pods each template makes. With these a workload is
checked when it is applied. The name of a kind links to the definition that the line is made from.

Of gangs that have a `scale` subresource a scale is reviewed as well. Of other workloads, such as Deployments, it is
not: [why](tenants.md#what-counts)."""

WORDS_WHY = """\
Why: a guess quotes the word that it was made from, so this page lists the words that can decide.
[Workloads](workloads.md#guesses) says how guesses are made, and in which order the sources count."""

WORDS_HOW = """\
All words are compared in lower case. In a command `*` stands for any text without a blank, and `* ` at the beginning
for any program. Below a list of words stand the regular expressions for what no word can say."""

WORDS = {
    "Images of cluster components": """\
        An image with one of these names belongs to a part of the cluster. Nothing is guessed of its pod.""",
    "Options that change the type": """\
        They turn the rest of the command into something else, as in a training script that only predicts.""",
    "Programs": """\
        These programs, modules, subcommands and options do one thing only. They count anywhere in a command.""",
    "Launchers": """\
        They start many processes. What they start counts more, if it says something.""",
    "Commands that wait": """\
        They do nothing until a person comes, and count where nothing else of the workload does anything. The last two
        expressions don't count in what a Job or its like makes.""",
    "Commands that look at the GPUs": """\
        Most workloads begin with a look at the GPUs. It counts where nothing else is done, not even waiting.""",
    "Names of variables": """\
        The whole name of an environment variable.""",
    "Words of scripts": """\
        A script's name usually begins with what the script does, so its first known word counts.""",
    "Scripts named after what is trained": """\
        Data that people train on, and models that they train. These words count where a script's name has no other
        known word.""",
    "Words of images": """\
        Words of an image's path without its registry; the tag counts where the path has no known word. Where an image
        has words of several types, interactive comes first, then batch, serving and training.""",
    "Words of names": """\
        A workload's name usually ends in what the workload is, so its last known word counts. `sft`, `lora` and other
        methods of training say nothing in a name that also says batch or inference.""",
    "Words of serving or batch": """\
        In the name of a script or of a workload these words say serving if the workload goes on for ever, and batch if
        it is made to end.""",
    "Ports": """\
        Default ports of programs.""",
}
"""The text below each heading of the page of words."""
