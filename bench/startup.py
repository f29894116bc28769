"""The start of a command: the modules that it imports, and its CPU time up to a refused connection.

`python bench/startup.py`. The median of some runs; the commands take turns.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from certs.source import make_files

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 10
PROGRAM = str(Path(sys.executable).with_name("gpu-tiers"))
COMMANDS = (
    *("--version", "usage", "posture", "lint", "check", "audit", "explain job/ranker", "why-pending ranker"),
    *("policy diff four-tier", "policy check four-tier", "review examples/job-training.yaml"),
)
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "https://127.0.0.1:1", certificate-authority: {ca}}}}}]
users: [{{name: me, user: {{token: none}}}}]
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
"""


def run(command: str, kubeconfig: Path, *options: str) -> tuple[float, str]:
    """Seconds of CPU that a run takes, and what it says on stderr; `options` are Python's."""
    before = cpu_of_children()
    env = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # pip compiles what it installs
    words = (sys.executable, *options, PROGRAM, *command.split())
    output = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, env=env).stderr
    return cpu_of_children() - before, output


def cpu_of_children() -> float:
    """Return user and system time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def imported(command: str, kubeconfig: Path) -> int:
    """Return how many modules a run imports."""
    return run(command, kubeconfig, "-X", "importtime")[1].count("import time:") - 1


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder), ["localhost"])
        kubeconfig = Path(folder) / "config"
        kubeconfig.write_text(KUBECONFIG.format(ca=Path(folder) / "ca.crt"), encoding="utf-8")
        runs: dict[str, list[float]] = {command: [] for command in COMMANDS}
        modules = {command: imported(command, kubeconfig) for command in COMMANDS}
        for _ in range(ROUNDS):
            for command, seconds in runs.items():
                seconds.append(run(command, kubeconfig)[0])
        print("| | modules | CPU ms |\n|---|---|---|")
        for command, seconds in runs.items():
            print(f"| `{command}` | {modules[command]} | {statistics.median(seconds) * 1000:.0f} |")


if __name__ == "__main__":
    main()
