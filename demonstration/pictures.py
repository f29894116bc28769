"""The command `python -m demonstration.pictures FOLDER`: makes the pictures of terminals and of the page.

Times, and names that Kubernetes makes up, are replaced by ones that stay: a picture changes only with what it shows.
"""

import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from demonstration.browser import Browser
from demonstration.day import day
from demonstration.scene import SECONDS_BETWEEN, Scene
from demonstration.terminal import LEFT_OUT, WIDTH, Said, terminal
from installation.examples import add_tenants, example_policy
from installation.helm import ROOT, program
from installation.local_webhook import Address, install_chart, start_webhook
from installation.readiness import wait_for_webhook
from installation.workload_crds import add_kinds
from localcluster import ControlPlane
from localcluster.arguments import EXPECTED_ERRORS
from localcluster.debian import PackageError
from localcluster.ports import free_ports
from localcluster.processes import ProcessError
from localcluster.prometheus import Backfilled
from localcluster.waiting import wait_until

REPLICA = "gpu-tiers-6c9f7d8b5-kx2vn"
DESK, END, PHONE = (1440, 1570), (1440, 860), (390, 1780)
"""Windows: for the beginning of the page, for its end, and a phone's."""
WIDE = 160
MANY = 300
PENDING = "7 of them by pods without a node"
"""What the page says of the scene's pod that waits, up to twenty seconds after it says that it waits."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
_SINCE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_CHART = re.compile(r'<div class="chart">.*?</div>', re.DOTALL)
_ENDED = re.compile(r'(?<=data-label="Ended after">)\d+(?= s</td>)')
FORM, BETWEEN = "%Y-%m-%d %H:%M:%S UTC", timedelta(seconds=47)
MORNING = datetime(2026, 11, 20, 9, 41, tzinfo=UTC)


def main(folder: Path) -> int:
    """Write all pictures into a folder; return the exit code: 1 for an expected error, whose text is printed."""
    os.chdir(ROOT)
    try:
        browser = Browser()
        (folder / "terminal-demo.svg").write_text(terminal("make demo", [demo()]), encoding="utf-8")
        with ControlPlane() as cluster:
            page, refused, crowded, terminals = shown(cluster)
    except (*EXPECTED_ERRORS, PackageError) as error:
        sys.stderr.write(f"pictures: {error}\n")
        return 1
    for name, text in terminals:
        (folder / f"terminal-{name}.svg").write_text(text, encoding="utf-8")
    for name, dark in (("light", False), ("dark", True)):
        browser.picture(page, folder / f"page-{name}.png", DESK, dark=dark)
    browser.picture(end_of(refused), folder / "page-preemptions.png", END)
    browser.picture(page, folder / "page-phone.png", PHONE)
    browser.picture(crowded, folder / "page-300-tenants.png", DESK, dark=True)
    return 0


def shown(cluster: ControlPlane) -> tuple[str, str, str, list[tuple[str, str]]]:
    """Return pictures of a busy cluster: the page, its refusals, many tenants, and terminals."""
    add_kinds(cluster)
    address = install_chart(cluster, preset="four-tier", policy=example_policy())
    (prometheus,) = free_ports(1)
    start_webhook(cluster, address, f"--identity={REPLICA}", f"--prometheus-url=http://127.0.0.1:{prometheus}")
    wait_for_webhook(cluster)
    add_tenants(cluster)
    scene = Scene(cluster)
    scene.set_up()
    (folder := cluster.folder / "prometheus").mkdir()
    with Backfilled(folder, prometheus, day(), time.time()):
        wait_until(lambda: PENDING in fetched(address), 60, "the GPUs of the pod that waits, in its tenant's row", 2)
        page, refused = settled(fetched(address)), settled(fetched(address, "/?refused=1"))
        if not (chart := _CHART.search(page)):
            raise ProcessError(f"the page has no chart by Prometheus: {folder / 'log'}")
        scene.add_a_deployment_that_comes_too_late()
        drawn = list(terminals(cluster))
        scene.add_tenants(MANY)
        wait_until(
            lambda: f"of {MANY} tenants" in (now := fetched(address)) and "Not well" not in now, 240, "tenants", 2
        )
        crowded = settled(fetched(address))
    return page, refused, _CHART.sub(lambda _: chart[0], crowded), drawn


def terminals(cluster: ControlPlane) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each terminal: what people type and read."""
    namespace = ("-n", "team-alpha")
    apply = ("apply", "-f", "examples/pytorchjob-llm-finetune.yaml")
    refused = cluster.kubectl(*apply, check=False)
    yield "refused", terminal("kubectl apply", [Said(f"kubectl {' '.join(apply)}", refused.stderr)])
    yield "posture", terminal("gpu-tiers posture", [asked(cluster, "posture")], WIDE)
    yield "explain", terminal("gpu-tiers explain", [asked(cluster, "explain", "deploy/draft-model", *namespace)])


def asked(cluster: ControlPlane, *arguments: str) -> Said:
    """Return a command of gpu-tiers and its output, in which numbers that change are replaced."""
    text = printed(*arguments, f"--kubeconfig={cluster.kubeconfig}")
    text = re.sub(r"refused (once|\d+ times)", "refused 4 times", text)
    text = text.replace("It may try again at any moment.", "It tries again by itself, within 20 seconds or so.")
    return Said(f"gpu-tiers {' '.join(arguments)}", re.sub(r"\d+ seconds?", "20 seconds", text))


def demo() -> Said:
    """Return parts of the demo: its head, a pod that gets its tier, a refused workload, and the end."""
    head, *blocks = printed("demo").split("\n\n")
    first = next(each for each in blocks if plain(each).startswith("Pod team-alpha/transcribe"))
    refused = next(each for each in blocks if "\n  refused: " in plain(each))
    lines = [head.splitlines()[0], LEFT_OUT, *first.splitlines(), "", LEFT_OUT, *refused.splitlines(), "", LEFT_OUT]
    return Said("make demo", "\n".join([*lines, *blocks[-1].splitlines()]))


def printed(*arguments: str) -> str:
    """Return the output of gpu-tiers on a terminal, in colour; CalledProcessError if it fails."""
    wide = {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1"}
    command = [program("gpu-tiers"), *arguments]
    run = subprocess.run(command, env=os.environ | wide, capture_output=True, text=True, check=True)  # noqa: S603
    return run.stdout


def plain(text: str) -> str:
    """Return the text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def fetched(address: Address, path: str = "/") -> str:
    """The page, as a browser gets it."""
    connection = http.client.HTTPConnection("127.0.0.1", address.page_port, timeout=10)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def settled(page: str) -> str:
    """The page with times that follow each other at a distance, and the trace of its first verdict open."""
    page = _SINCE.sub((MORNING - timedelta(days=1)).strftime("%Y-%m-%d %H:%M UTC"), page)
    page = re.sub(
        rf"(?<=the first since ){_SINCE.pattern}", (MORNING - BETWEEN * 2).strftime("%Y-%m-%d %H:%M UTC"), page
    )
    page = re.sub(r"(?<=until )\d\d:\d\d(?= UTC)", MORNING.strftime("%H:%M"), page)
    page = re.sub(r"127\.0\.0\.1:\d+", "prometheus.monitoring.svc:9090", page)
    when = settled_times(_TIME.findall(page))
    page = _TIME.sub(lambda found: when[found[0]], page)
    ends = iter(("3", "14"))
    page = _ENDED.sub(lambda found: next(ends, found[0]), page)
    page = re.sub(r"(?<=vllm-chat-)[a-z0-9]+-[a-z0-9]{5}\b", "6d4cf56db-t7kzq", page)
    return page.replace("<details>", "<details open>", 1)


def end_of(page: str) -> str:
    """The page from its verdicts on."""
    head, _, rest = page.partition("<header>")
    return head + rest[rest.index('<h2 id="verdicts">') :]


def settled_times(found: Iterable[str]) -> dict[str, str]:
    """A time of that morning for each, the same for those of one step of the scene."""
    times = {datetime.strptime(each, FORM).replace(tzinfo=UTC): each for each in found}
    given: dict[str, str] = {}
    step, before = MORNING, max(times)
    for each in sorted(times, reverse=True):
        if before - each >= timedelta(seconds=SECONDS_BETWEEN - 1):
            step -= BETWEEN
        before = each
        given[times[each]] = step.strftime(FORM)
    return given


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
