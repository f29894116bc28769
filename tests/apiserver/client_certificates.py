"""A CA of clients, and an API server that shows its certificate to every webhook which asks for one."""

from pathlib import Path

import yaml

from certs.make import Lifetimes, make_ca, pem, utc_now
from tests.unit.server.serving import a_client

CONFIGURATION = "apiserver.config.k8s.io/v1"


def make_authority(folder: Path) -> str:
    """Make the CA, the API server's certificate and a kubelet's; return the API server's option that shows its own."""
    ca = make_ca(utc_now(), Lifetimes())
    (folder / "ca.crt").write_bytes(pem(ca.certificate))
    for name in ("kube-apiserver", "kubelet"):
        a_client(ca, name, folder / f"{name}.pem")
    shown = str(folder / "kube-apiserver.pem")
    user = {"name": "*", "user": {"client-certificate": shown, "client-key": shown}}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [user]}
    (folder / "webhooks.kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    configuration = {
        "apiVersion": CONFIGURATION,
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(folder / "webhooks.kubeconfig"),
    }
    plugins = [
        {"name": name, "configuration": configuration}
        for name in ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
    ]
    admission = {"apiVersion": CONFIGURATION, "kind": "AdmissionConfiguration", "plugins": plugins}
    (folder / "admission.yaml").write_text(yaml.safe_dump(admission))
    return f"--admission-control-config-file={folder / 'admission.yaml'}"
