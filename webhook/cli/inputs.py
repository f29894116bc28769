"""What a review is of: the files, folders, kustomizations and charts that a person names, together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from webhook.cli.documents import BadInput, Document, documents
from webhook.cli.finding import OF_NO_NAMESPACE
from webhook.cli.left_out import LeftOut
from webhook.cli.rendering import kustomized, templated

NOTHING = (
    "nothing to review: name files or folders, - for standard input, or something to render with --kustomize or --helm"
)

FilenameOption = Annotated[
    list[str] | None, typer.Option("--filename", "-f", help="The same, as kubectl has it; may be repeated.")
]
KustomizeOption = Annotated[
    list[Path] | None, typer.Option(help="Folder to render with `kubectl kustomize`; may be repeated.")
]
HelmOption = Annotated[list[Path] | None, typer.Option(help="Chart to render with `helm template`; may be repeated.")]
ValuesOption = Annotated[list[Path] | None, typer.Option(help="Values file for --helm; may be repeated.")]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was named. `namespace` is that of objects that name none; what holds no object is added to `left_out`."""

    names: Sequence[str]
    kustomizations: Sequence[Path] = ()
    charts: Sequence[Path] = ()
    values: Sequence[Path] = ()
    namespace: str | None = None
    left_out: list[LeftOut] = field(default_factory=list)

    def read(self) -> list[Document]:
        """All objects. Raises BadInput."""
        if not (self.names or self.kustomizations or self.charts):
            raise BadInput(NOTHING)
        if self.values and not self.charts:
            raise BadInput("--values: goes with --helm, which is missing")
        return [self._placed(each) for each in self._all()]

    def _all(self) -> Iterator[Document]:
        for name in dict.fromkeys(self.names):
            yield from documents(name, self.left_out)
        for folder in self.kustomizations:
            yield from kustomized(folder)
        for chart in self.charts:
            yield from templated(chart, self.values, self.namespace)

    def _placed(self, document: Document) -> Document:
        if not self.namespace or document.metadata.get("namespace") or document.kind in OF_NO_NAMESPACE:
            return document
        metadata = {**document.metadata, "namespace": self.namespace}
        return replace(document, tree={**document.tree, "metadata": metadata})
