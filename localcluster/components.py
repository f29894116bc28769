"""The command line of each part of the control plane."""

from collections.abc import Sequence
from pathlib import Path

from localcluster.versions import Kubernetes

LOOPBACK = "127.0.0.1"
SERVICE_ADDRESSES = "10.0.0.0/24"
ISSUER = "https://kubernetes.default.svc"
FAKE_NODES = "kwok.x-k8s.io/node=fake"
FAKE_NODE_ADDRESS = "192.0.2.1"  # of the block for documentation, RFC 5737: nothing answers there
FAKE_POD_ADDRESSES = "10.244.0.0/16"


def etcd(folder: Path, client: int, peer: int) -> list[str]:
    """Return the options of a single etcd, without fsync because the data lives only as long as the folder."""
    clients, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    return [
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
    ]


def apiserver(folder: Path, kubernetes: Kubernetes, address: str, port: int, etcd_port: int, gates: str) -> list[str]:
    """Return the API server's options, with feature gates and API versions of `kubernetes`.

    On loopback the endpoint reconciler is off: it refuses that address, and there is no cluster network. Nobody reads
    the metrics about etcd, whose polling is a sixth of what an idle API server does.
    """
    enabled = ",".join(f"{api}=true" for api in kubernetes.runtime_config)
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--etcd-count-metric-poll-period=0",
        "--etcd-db-metric-poll-interval=0",
        f"--bind-address={address}",
        f"--advertise-address={address}",
        f"--endpoint-reconciler-type={'none' if address == LOOPBACK else 'lease'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'tls'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        f"--service-cluster-ip-range={SERVICE_ADDRESSES}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={folder / 'service-account.pem'}",
        f"--service-account-signing-key-file={folder / 'service-account.pem'}",
        "--allow-privileged",
        f"--feature-gates={gates}",
        f"--runtime-config={enabled}",
    ]


def controller_manager(folder: Path, gates: str, controllers: Sequence[str]) -> list[str]:
    """Return the options, by which each controller acts as its own ServiceAccount, as in clusters made by kubeadm."""
    return [
        f"--kubeconfig={folder / 'kube-controller-manager.kubeconfig'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials",
        f"--controllers={','.join(controllers)}",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        f"--service-account-private-key-file={folder / 'service-account.pem'}",
        f"--root-ca-file={folder / 'tls' / 'apiserver.crt'}",
        f"--feature-gates={gates}",
    ]


def scheduler(folder: Path, gates: str) -> list[str]:
    """Return the scheduler's options, with the default profile."""
    return [
        f"--kubeconfig={folder / 'kube-scheduler.kubeconfig'}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--feature-gates={gates}",
    ]


def kwok(kubeconfig: Path, stages: Path) -> list[str]:
    """Return kwok's options. It answers only for nodes with the annotation FAKE_NODES, and leaves real nodes alone."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--config={stages}",
        f"--manage-nodes-with-annotation-selector={FAKE_NODES}",
        "--node-lease-duration-seconds=40",
        f"--node-ip={FAKE_NODE_ADDRESS}",
        f"--cidr={FAKE_POD_ADDRESSES}",
    ]
