"""Runs the real kubectl against one kubeconfig and turns its failure into a readable error."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcluster.environment import SHORT_LIVED, without_a_persons


class KubectlError(Exception):
    """kubectl ended with another code than 0; `result` holds what it said."""

    def __init__(self, arguments: tuple[str, ...], result: "Result") -> None:
        self.result = result
        super().__init__(f"kubectl {' '.join(arguments)} (exit {result.code}): {result.stderr.strip()}")


@dataclass(frozen=True)
class Result:
    """The output and exit code of one call of kubectl."""

    stdout: str
    stderr: str
    code: int

    def json(self) -> Any:
        """Return stdout, decoded: for calls with `-o json`."""
        return json.loads(self.stdout)


@dataclass(frozen=True)
class Kubectl:
    """The program and the cluster it talks to."""

    program: Path
    kubeconfig: Path
    timeout_seconds: float = 300

    def __call__(self, *arguments: str, input: str | None = None, check: bool = True) -> Result:  # noqa: A002
        """Run kubectl; KubectlError on a failure unless `check` is False, TimeoutExpired after `timeout_seconds`."""
        run = subprocess.run(
            [self.program, f"--kubeconfig={self.kubeconfig}", *arguments],
            env=without_a_persons() | SHORT_LIVED,
            input=input,
            capture_output=True,
            text=True,
            timeout=self.timeout_seconds,
            check=False,
        )
        result = Result(run.stdout, run.stderr, run.returncode)
        if check and result.code:
            raise KubectlError(arguments, result)
        return result
