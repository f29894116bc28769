"""The description of one operator."""

from dataclasses import dataclass, field
from string import Template

from localcluster.binaries import Binary


@dataclass(frozen=True)
class Operator:
    """One operator's process, and the files of its Go module that are its manifests, or folders with a kustomization.

    In `arguments`, `configuration` and `environment` stand $webhook and $probe for free ports, $folder for a folder
    of its own, $config for the file that the configuration is written to, $certificates for where its webhook looks
    for tls.crt and tls.key: below that folder, at `mounted_at`. A kubelet would mount the Secret
    `serving_certificate` there; the operator fills it itself.
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
    """More of the kustomization of which `manifests` are the resources."""
    others: tuple[tuple[str, str], ...] = ()
    """More of its manifests: a module that it depends on, and a file there."""
    installed: str = ""
    """More objects, as YAML, that the operator's installer makes and no manifest of its module is."""
    serving_certificate: str = ""
    mounted_at: str = "certificates"
    certificate_of: str = ""
    """A Service for which the operator wants a certificate that is there before it starts."""
    kubeconfig: str = "--kubeconfig=$folder/kubeconfig"
    """The argument that names it; none: it only knows $KUBECONFIG."""
    ready: str = "/readyz"
    """The path at which $probe says whether it works; none: it listens on $webhook."""

    @property
    def name(self) -> str:
        """Its name, also of its process and its log."""
        return self.binary.name


def filled(text: str, places: dict[str, str]) -> str:
    """Put ports and paths in; KeyError for a name that there isn't."""
    return Template(text).substitute(places)
