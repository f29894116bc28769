"""The tests pass in any shell: whatever it says of clusters, proxies, folders, languages and times."""

import locale
import os
import subprocess
import sys
import time
from pathlib import Path

from localcluster.binaries import cache_folder

ROOT = Path(__file__).parents[2]
SOME = (
    "tests/unit/test_environment.py::test_the_shell_is_not_heard",
    "tests/unit/cli/test_command_line.py",
    "tests/unit/kube/test_kubeconfig.py",
    "tests/unit/server/test_probes.py",
    "tests/chart/test_about.py",
    "-k=not waits_for_no_library",
)
"""The command line, a kubeconfig, the server over TLS, and helm. What 17 commands import is no matter of the shell."""


def hostile(folder: Path) -> dict[str, str]:
    """A shell of somebody who works with another cluster, which is gone, through proxies, which are closed."""
    kubeconfig = folder / "kubeconfig"
    cluster = {"server": "https://127.0.0.1:9"}
    kubeconfig.write_text(
        f"{{apiVersion: v1, kind: Config, current-context: gone, clusters: [{{name: gone, cluster: {cluster}}}],"
        " contexts: [{name: gone, context: {cluster: gone, user: gone}}], users: [{name: gone, user: {token: no}}]}"
    )
    proxies = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https", "all")} | {"no_proxy": "example.com"}
    helm = {"NAMESPACE": "elsewhere", "KUBECONTEXT": "gone", "DRIVER": "memory", "KUBEAPISERVER": cluster["server"]}
    return {
        **proxies,
        **{name.upper(): value for name, value in proxies.items()},
        **{f"HELM_{name}": value for name, value in helm.items()},
        **{f"XDG_{name}_HOME": str(folder / name) for name in ("CACHE", "CONFIG", "DATA", "STATE")},
        **dict.fromkeys(("LANG", "LC_ALL"), "de_DE.ISO-8859-1"),
        "TZ": "Asia/Kathmandu",
        "FORCE_COLOR": "1",
        "COLUMNS": "40",
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBECONFIG": str(kubeconfig),
    }


def test_the_shell_is_not_heard(tmp_path: Path) -> None:
    """Run as itself, and by the next test in that shell."""
    heard = {name for name, value in hostile(tmp_path).items() if os.environ.get(name) == value}
    assert (heard, time.tzname[0], locale.getpreferredencoding().upper()) == (set(), "UTC", "UTF-8")


def test_some_of_each_kind_pass_in_a_hostile_shell(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SOME]
    shell = os.environ | hostile(tmp_path) | {"GPU_TIERS_CACHE": str(cache_folder())}
    run = subprocess.run(command, cwd=ROOT, env=shell, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
