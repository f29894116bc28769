"""Makes what a new control plane needs to trust: tokens, the ServiceAccount key, kubeconfigs."""

import secrets
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

NODE = "node-0"
"""The name of the one real node, where there is one."""
USERS = {
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", "system:masters"),
    "kubelet": (f"system:node:{NODE}", "system:nodes"),
    "kube-proxy": ("system:kube-proxy", ""),
    "coredns": ("coredns", "system:masters"),
    "dra-driver": ("dra-driver", "system:masters"),
}


def write_credentials(folder: Path, server: str) -> None:
    """Write tokens.csv, service-account.pem and a <name>.kubeconfig for each of USERS into the folder."""
    write_private(folder / "service-account.pem", service_account_key())
    tokens = {name: secrets.token_urlsafe(24) for name in USERS}
    rows = [f'{tokens[name]},{user},{name},"{groups}"' for name, (user, groups) in USERS.items()]
    write_private(folder / "tokens.csv", "\n".join(rows) + "\n")
    for name, token in tokens.items():
        write_private(folder / f"{name}.kubeconfig", kubeconfig(server, folder / "tls" / "apiserver.crt", token))


def kubeconfig(server: str, authority: Path, token: str) -> str:
    """Return a kubeconfig's text; the authority is a path: the API server makes that file as it starts."""
    name = "gpu-tiers"
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority": str(authority)}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        }
    )


def service_account_key() -> str:
    """Return a fresh P-256 key as PEM, to sign and to check ServiceAccount tokens."""
    return (
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        .decode()
    )


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_text(text)
