"""Trainings that know nothing of gpu-tiers, and the Python with their frameworks, as a pod of a real node runs them.

Their virtual environment has 6 GB. It is the one of the frameworks' tests, of this machine, and pods see it where it
lies here: beside it they need only the Python that it was made with.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from installation.helm import ROOT
from localcluster.binaries import cache_folder

REQUIREMENTS = ROOT / "requirements" / "frameworks"
PROGRAMS = ROOT / "tests" / "frameworks" / "programs"
STOCK = ("stock_huggingface.py", "stock_lightning.py")
FRAMEWORKS = "$FRAMEWORKS"
"""Where a pod's shell finds their programs."""
STEPS = 450
"""More than a program makes in the grace period of a pod; both save every 100 steps by themselves."""
HOW_TO_GET_IT = "`make test-frameworks` installs torch, transformers and Lightning (6 GB); it is left out until then"
_SYSTEMS_OWN = Path("/usr")

Tree = dict[str, Any]


def stock(program: str, seconds: float) -> str:
    """Return the command of one of STOCK with steps of that length; its output is in /data/out."""
    options = json.dumps({"steps": STEPS, "sleep": seconds})
    return f"cd /data; exec {FRAMEWORKS}/python /code/{program} '{options}' 2>>/data/stderr"


def stock_programs() -> dict[str, str]:
    """Return the programs by file name."""
    return {name: (PROGRAMS / name).read_text() for name in STOCK}


def folder_of(name: str) -> Path:
    """Return the folder of a framework's environment for today's requirements and this Python."""
    made_of = (REQUIREMENTS / f"{name}.txt").read_bytes() + sys.version.encode()
    return cache_folder() / "frameworks" / f"{name}-{hashlib.sha256(made_of).hexdigest()[:12]}"


def obstacle() -> str | None:
    """Return why pods can't run them; None if they can."""
    if not (folder_of("torch") / "complete").exists():
        return HOW_TO_GET_IT
    if _python() == _SYSTEMS_OWN:
        return "the Python of .venv is the system's own, which a pod can't have beside that of its image"
    return None


def with_frameworks(pod: Tree) -> Tree:
    """Let the pod's containers see torch's environment, whose programs lie in $FRAMEWORKS."""
    for number, folder in enumerate((folder_of("torch"), _python())):
        name, path = f"frameworks-{number}", str(folder)
        pod["spec"]["volumes"].append({"name": name, "hostPath": {"path": path, "type": "Directory"}})
        for each in pod["spec"]["containers"]:
            each["volumeMounts"].append({"name": name, "mountPath": path, "readOnly": True})
    for each in pod["spec"]["containers"]:
        each["env"] += [
            {"name": FRAMEWORKS.lstrip("$"), "value": str(folder_of("torch") / "bin")},
            {"name": "OMP_NUM_THREADS", "value": "1"},
        ]
    return pod


def _python() -> Path:
    """Return the Python that the environment was made with."""
    settings = (folder_of("torch") / "pyvenv.cfg").read_text().splitlines()
    return next(Path(line.partition(" = ")[2]).parent for line in settings if line.startswith("home = "))
