"""A Prometheus that scrapes one target five times a second and asks the chart's alerts as often."""

import http.client
import json
import re
from pathlib import Path
from typing import Any

import yaml

from localcluster import Cluster
from localcluster.ports import free_ports
from localcluster.processes import Process
from localcluster.waiting import answers_ready, wait_until

from .promtool import prometheus

ALERTS = Path(__file__).parents[2] / "charts" / "gpu-tiers" / "files" / "alerts.yaml"
SECONDS = 240
EVERY = "200ms"
FOR = re.compile(r"^( +for:) \w+$", re.MULTILINE)


class Prometheus:
    """Runs beside a cluster until `end`, and scrapes a port. Of the alerts only the time that they wait is changed."""

    def __init__(self, cluster: Cluster, port: int) -> None:
        self._cluster = cluster
        folder = cluster.folder / "prometheus"
        folder.mkdir()
        (self._port,) = free_ports(1)
        (folder / "alerts.yaml").write_text(FOR.sub(r"\1 0s", ALERTS.read_text()))
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(_scraping(port)))
        options = {
            "config.file": folder / "prometheus.yaml",
            "storage.tsdb.path": folder / "tsdb",
            "web.listen-address": f"127.0.0.1:{self._port}",
        }
        command = [str(prometheus()), *(f"--{name}={value}" for name, value in options.items())]
        self._process: Process = cluster.processes.start("prometheus", command)
        wait_until(lambda: answers_ready(self._port, "/-/ready"), SECONDS, "Prometheus")

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    def end(self) -> None:
        """Stop it."""
        self._cluster.processes.end(self._process)

    def scrapes(self) -> bool:
        """Return whether the server has seen the target."""
        return bool(self._asked("/api/v1/query?query=gpu_tiers_build_info")["result"])

    def firing(self) -> dict[str, str]:
        """The summaries of the alerts that fire, by name; of those of one name any."""
        found = (each for each in self._asked("/api/v1/alerts")["alerts"] if each["state"] == "firing")
        return {each["labels"]["alertname"]: each["annotations"]["summary"] for each in found}

    def _asked(self, path: str) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        connection.request("GET", path)
        data: dict[str, Any] = json.loads(connection.getresponse().read())["data"]
        connection.close()
        return data


def _scraping(port: int) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": EVERY, "evaluation_interval": EVERY},
        "rule_files": ["alerts.yaml"],
        "scrape_configs": [{"job_name": "gpu-tiers", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}],
    }
