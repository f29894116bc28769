"""The description of one operator."""

from dataclasses import dataclass, field
from string import Template

from localcluster.binaries import Binary


@dataclass(frozen=True)
class Operator:
    """One operator's process, and the files of its Go module that are its manifests, or folders with a kustomization.

    `arguments`, `configuration` and `environment` may name $webhook and $probe (free ports), $folder (a folder of its
    own), $config (the file with the configuration), and $certificates (the folder where its webhook looks for tls.crt
    and tls.key, at `mounted_at` below $folder). A kubelet would mount the Secret `serving_certificate` there; the
    operator fills it itself.
    """

    binary: Binary
    module: str
    manifests: tuple[str, ...]
    namespace: str
    account: str
    arguments: tuple[str, ...]
    configuration: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    kustomization: str = ""
    """More lines of the kustomization that has `manifests` as its resources."""
    others: tuple[tuple[str, str], ...] = ()
    """More of its manifests: a module that it depends on, and a file there."""
    installed: str = ""
    """More objects, as YAML, that the operator's installer makes, and that are in no manifest of its module."""
    serving_certificate: str = ""
    mounted_at: str = "certificates"
    certificate_of: str = ""
    """A Service whose certificate the operator needs before it starts."""
    kubeconfig: str = "--kubeconfig=$folder/kubeconfig"
    """The argument that names the kubeconfig; "" if the program only reads $KUBECONFIG."""
    ready: str = "/readyz"
    """The path at $probe that tells whether it is ready; "" if it is ready once it listens on $webhook."""

    @property
    def name(self) -> str:
        """Its name, also of its process and its log."""
        return self.binary.name


def filled(text: str, places: dict[str, str]) -> str:
    """Fill in names such as $probe; KeyError for an unknown name."""
    return Template(text).substitute(places)
