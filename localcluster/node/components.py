"""The command line and the settings of each part of the real node."""

from pathlib import Path

import yaml

from localcluster.credentials import NODE
from localcluster.node.packages import PLUGINS

POD_ADDRESSES = "10.244.0.0/24"
DRA_DRIVER = "gpu.example.com"
PAUSE_IMAGE = "localcluster.test/pause:1"
MOST_PODS = 200


def containerd(folder: Path, shim: str) -> str:
    """Return containerd's TOML (version 3). All its files are in the folder, and the shim isn't the machine's own.

    `restrict_oom_score_adj`: a machine without CAP_SYS_RESOURCE may not lower a process's score, and runc dies of it.
    The plugins that are off would write outside the folder, or probe file systems that no node needs.
    """
    return f"""\
version = 3
root = "{folder / "containerd"}"
state = "{folder / "containerd-state"}"
disabled_plugins = [{", ".join(f'"io.containerd.{each}"' for each in UNUSED)}]

[grpc]
address = "{folder / "containerd.sock"}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
pinned_images = {{sandbox = "{PAUSE_IMAGE}"}}

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = "{shim}"

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{PLUGINS}"]
conf_dir = "{folder / "cni"}"
"""


UNUSED = ("internal.v1.opt", *(f"snapshotter.v1.{each}" for each in ("blockfile", "devmapper", "erofs", "zfs")))


def pod_network(folder: Path) -> dict[str, object]:
    """Return a CNI configuration that gives each pod a cable to the node, so that traffic to Services uses nftables."""
    addresses = {"type": "host-local", "ranges": [[{"subnet": POD_ADDRESSES}]], "routes": [{"dst": "0.0.0.0/0"}]}
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [{"type": "ptp", "ipam": addresses | {"dataDir": str(folder / "addresses")}}],
    }


def kubelet_settings(folder: Path, address: str) -> str:
    """Return a KubeletConfiguration without the guards of a production node, such as evictions under pressure."""
    nothing = dict.fromkeys(("memory.available", "nodefs.available", "imagefs.available"), "0%")
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": address,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "clusterDNS": [address],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{folder / 'containerd.sock'}",
            "enforceNodeAllocatable": [],
            "evictionHard": nothing | {"nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%"},
            "failCgroupV1": False,
            "failSwapOn": False,
            "imageGCHighThresholdPercent": 100,
            "localStorageCapacityIsolation": False,
            "maxPods": MOST_PODS,
            "nodeStatusUpdateFrequency": "2s",
            "resolvConf": str(folder / "resolv.conf"),
            "volumePluginDir": str(folder / "volume-plugins"),
        }
    )


def kubelet(folder: Path, kubeconfig: Path, address: str) -> list[str]:
    """Return the kubelet's options. Its root folder is the default one, which the node mounts for itself."""
    return [
        f"--config={folder / 'kubelet.yaml'}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={NODE}",
        f"--node-ip={address}",
    ]


def kube_proxy(kubeconfig: Path) -> list[str]:
    """Return kube-proxy's options. The three zeros leave the machine's connection tracking as it is."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--proxy-mode=nftables",
        f"--hostname-override={NODE}",
        f"--cluster-cidr={POD_ADDRESSES}",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0",
        "--conntrack-tcp-timeout-close-wait=0",
    ]


def dra_driver(kubeconfig: Path, devices: int) -> list[str]:
    """Return the driver's options. Kubelet folders are the default ones; containerd reads CDI files of /var/run/cdi."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--node-name={NODE}",
        f"--num-devices={devices}",
        f"--driver-name={DRA_DRIVER}",
        "--cdi-root=/var/run/cdi",
    ]


def dns(kubeconfig: Path, address: str) -> str:
    """Return the Corefile: Services by name, and nothing outside the cluster."""
    return f"""\
cluster.local:53 in-addr.arpa:53 {{
    bind {address}
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
    }}
}}
"""
