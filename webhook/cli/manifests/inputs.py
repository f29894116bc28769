"""The objects that a user names: the objects to review, and the facts of the cluster in which they are judged.

They are in files, folders, kustomizations and charts. kubectl renders a kustomization, and helm a chart, if they are
installed.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from webhook.cli.manifests.documents import BadInput, Document, LeftOut, called, documents, documents_in
from webhook.cluster.offline import ReadOnceCluster, offline_cluster
from webhook.config.tenant_quota_schema import tenant_quota_problems
from webhook.objects.data_files import data_file
from webhook.objects.manifests import Manifest
from webhook.objects.refusal import Refused
from webhook.policy.classification.by_shape import with_objects_inside
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import sentence

_KINDS: Mapping[str, dict[str, str]] = data_file(__name__, "kinds.yaml")
OF_NO_NAMESPACE, CLUSTER_SCOPED = _KINDS["factsOfNoNamespace"], _KINDS["clusterScoped"]
FACTS = {**OF_NO_NAMESPACE, **_KINDS["factsOfANamespace"]}

NOTHING = (
    "nothing to review: name files or folders, - for standard input, or something to render with --kustomize or --helm"
)


class Inputs(msgspec.Struct, frozen=True):
    """The named files, and what is rendered: the options of the commands that read manifests."""

    files: list[str] | None = None
    filename: list[str] | None = None
    kustomize: list[Path] | None = None
    helm: list[Path] | None = None
    values: list[Path] | None = None

    @property
    def given(self) -> bool:
        return any((self.files, self.filename, self.kustomize, self.helm, self.values))

    def read(self, namespace: str | None, left_out: list[LeftOut], *, past_broken: bool = False) -> list[Document]:
        """Return all objects. Those that name no namespace are put in the given one. Raises BadInput.

        Files and documents of a folder that are no objects are added to `left_out`, with `past_broken` broken ones too.
        """
        names, folders, charts = (*(self.files or ()), *(self.filename or ())), self.kustomize or (), self.helm or ()
        if not (names or folders or charts):
            raise BadInput(NOTHING)
        if self.values and not charts:
            raise BadInput("--values: goes with --helm, which is missing")
        found = [each for name in dict.fromkeys(names) for each in documents(name, left_out, past_broken=past_broken)]
        found += [each for folder in folders for each in kustomized(folder)]
        found += [each for chart in charts for each in templated(chart, self.values or (), namespace)]
        return [placed(each, namespace) if namespace else each for each in found]


def placed(document: Document, namespace: str) -> Document:
    """Return the object in the namespace. Raises BadInput if it names another one, which kubectl refuses too."""
    own = document.metadata.get("namespace")
    if own == namespace or document.kind in OF_NO_NAMESPACE:
        return document
    if own:
        other = f'in namespace "{own}", and --namespace says "{namespace}"; leave out one of them'
        raise BadInput(f"{document.source}: {document.kind}/{document.name} is {other}")
    return replace(document, tree={**document.tree, "metadata": {**document.metadata, "namespace": namespace}})


def is_fact(document: Document) -> bool:
    """Tell whether an object is used to judge workloads, such as a Namespace, a TenantQuota or a ResourceClaim."""
    return FACTS.get(document.kind) == document.group


def tenants_in(paths: Iterable[Path], left_out: list[LeftOut] | None = None) -> list[Document]:
    """Return the objects of --tenants. Raises BadInput, also for a file without a TenantQuota or a Namespace."""
    world: list[Document] = []
    for path in paths:
        found = list(documents(str(path), left_out))
        if not any(document.kind in ("TenantQuota", "Namespace") for document in found):
            raise BadInput(f"{called(str(path))}: holds no TenantQuota and no Namespace")
        world += found
    return world


def cluster_of(policy: TierPolicy, world: Sequence[Document]) -> ReadOnceCluster:
    """Return the cluster of these objects. Raises BadInput naming the broken ones."""
    objects = [each for document in world for each in with_objects_inside(document, policy.kinds)]
    quotas = (each for each in objects if each.group_kind == TENANT_QUOTA)
    # an API server would refuse these by their schema
    problems = [f"{titled(each)}: {problem}" for each in quotas for problem in tenant_quota_problems(each.tree)]
    if problems:
        raise BadInput("\n".join(problems))
    try:
        return offline_cluster(policy.tiers, [each.identified for each in objects])
    except Refused as refused:
        for each in objects:
            try:
                offline_cluster(policy.tiers, [each.tree])
            except Refused as broken:
                problems.append(f"{titled(each)}: {sentence(broken.refusal)}")
        raise BadInput("\n".join(problems) or sentence(refused.refusal)) from None


def titled(document: Manifest) -> str:
    return f"{document.source}: {document.kind}/{document.name}"


SECONDS = 120
"""The most seconds that kubectl and helm may take: a kustomization may fetch its bases, and a chart its schema."""
LAST_LINES = 5
"""The last lines of a failed program's output that are shown."""

RELEASE = "release-name"
"""The name that `helm template` gives a release if none is named."""
_RELEASE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?")
_SOURCE = re.compile(r"# Source: (\S.*)")


def kustomized(folder: Path) -> Iterator[Document]:
    """Yield the output of `kubectl kustomize` for a folder. Raises BadInput."""
    text = _run("--kustomize", folder, ["kubectl", "kustomize", str(folder)])
    names = ("kustomization.yaml", "kustomization.yml", "Kustomization")
    file = next((each for each in (folder / name for name in names) if each.is_file()), folder)
    for document in documents_in(f"kubectl kustomize {folder}", text):
        yield _from(document, str(file))


def templated(chart: Path, values: Sequence[Path], namespace: str | None) -> Iterator[Document]:
    """Yield the output of `helm template` for a chart's folder or archive; the source of each object is its template.

    Raises BadInput.
    """
    name = chart.resolve().name
    command = ["helm", "template", name if _RELEASE_NAME.fullmatch(name) else RELEASE, str(chart)]
    command += [f"--values={each}" for each in values] + ([f"--namespace={namespace}"] if namespace else [])
    text = _run("--helm", chart, command)
    lines = text.splitlines()
    for document in documents_in(f"helm template {chart}", text):
        # Helm's comment above the output of a template: `# Source: CHART/templates/job.yaml`.
        source = next(filter(None, map(_SOURCE.match, reversed(lines[: document.line]))), None)
        own = chart / Path(source[1]).relative_to(Path(source[1]).parts[0]) if source else chart
        # a chart within an archive has no file
        yield _from(document, str(own) if own.is_file() or not source else f"{chart}: {source[1]}")


def _from(document: Document, file: str) -> Document:
    """Return the document with this file as its source, and no line, because nobody can look at the rendered text."""
    return replace(document, source=file, file=file, line=0)


def _run(option: str, folder: Path, command: Sequence[str]) -> str:
    said, program = f"{option} {folder}", command[0]
    if not folder.exists():
        raise BadInput(f"{said}: there is no such file or folder")
    found = shutil.which(program)
    if found is None:
        advice = "install it, or pipe what it makes: … | gpu-tiers review -"
        raise BadInput(f"{said}: {program} is not on the PATH; {advice}")
    try:
        run = subprocess.run(  # noqa: S603 - the program that the option is named after
            [found, *command[1:]], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise BadInput(f"{said}: {' '.join(command)} took more than {SECONDS} s") from None
    except OSError as error:
        raise BadInput(f"{said}: {program} can't be run: {error.strerror}") from None
    if run.returncode:
        last = run.stderr.decode(errors="replace").strip().splitlines()[-LAST_LINES:]
        raise BadInput("\n  ".join((f"{said}: {' '.join(command)} ended with {run.returncode}:", *last)))
    return run.stdout.decode(errors="replace")
