"""Writes the files that have their source elsewhere: reference pages, pictures, copies of what lies in two places.

Run it as `python docs/generate.py`. With --check it writes nothing, lists what is out of date, and ends with 1.
"""  # noqa: INP001 - a script

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT)]  # the generators, and the project they read

from generators.alerts import alerts  # noqa: E402 - needs the path above
from generators.chart_kinds import chart_kinds, chart_known  # noqa: E402 - needs the path above
from generators.chart_readme import chart_readme  # noqa: E402
from generators.commands import commands  # noqa: E402 - needs the path above
from generators.dashboard import dashboard  # noqa: E402
from generators.needed_values import needed_values  # noqa: E402
from generators.performance import performance  # noqa: E402
from generators.placement import placement  # noqa: E402
from generators.policy_fields import policy_fields  # noqa: E402
from generators.preemption import checkpointing  # noqa: E402
from generators.questions import questions  # noqa: E402
from generators.security import security  # noqa: E402
from generators.suite_schema import suite_schema  # noqa: E402
from generators.tenant_fields import tenant_fields  # noqa: E402
from generators.values import values  # noqa: E402
from generators.values_schema import values_schema  # noqa: E402
from generators.workloads import workload_kinds, workload_words, workloads  # noqa: E402
from pictures import (  # noqa: E402
    concepts,
    creates,
    preemption,
    queue,
    saves,
)
from pictures import placement as layout  # noqa: E402
from pictures.palettes import PALETTES  # noqa: E402
from pictures.what_happens import picture  # noqa: E402

from bench.figures import read_measured  # noqa: E402
from demonstration.figures import read  # noqa: E402
from demonstration.placement_figures import read_layouts  # noqa: E402
from demonstration.queue_figures import read_queue_run  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
PAGES = {
    "charts/gpu-tiers/values.schema.json": values_schema,  # first: others read it
    "charts/gpu-tiers/README.md": chart_readme,
    "charts/gpu-tiers/files/dashboard.json": dashboard,
    "charts/gpu-tiers/files/kinds.yaml": chart_kinds,
    "charts/gpu-tiers/files/known.yaml": chart_known,
    "charts/gpu-tiers/files/needed_values.yaml": needed_values,
    "docs/alerts.md": alerts,
    "docs/workloads.md": workloads,
    "docs/workload-kinds.md": workload_kinds,
    "docs/workload-words.md": workload_words,
    "docs/commands.md": commands,
    "docs/policy-reference.md": policy_fields,
    "docs/schemas/tierpolicytest.json": suite_schema,
    "docs/questions.md": questions,
    "docs/security.md": security,
    "docs/tenantquota-reference.md": tenant_fields,
    "docs/values.md": values,
}


def files() -> Iterator[tuple[Path, str]]:
    """Yield each generated file with its content."""
    for path, content in PAGES.items():
        yield ROOT / path, content()
    measured = read(PICTURES / "preemption-timeline.json")
    yield PICTURES / "preemption-timeline.svg", preemption.picture(measured)
    yield ROOT / "docs" / "checkpointing.md", checkpointing(measured)
    layouts = read_layouts(PICTURES / "placement.json")
    yield PICTURES / "placement.svg", layout.picture(layouts)
    yield PICTURES / "queue.svg", queue.picture(read_queue_run(PICTURES / "queue.json"))
    yield PICTURES / "saves.svg", saves.picture()
    yield ROOT / "docs" / "placement.md", placement(layouts)
    benched = read_measured(PICTURES / "creates.json")
    yield PICTURES / "creates.svg", creates.picture(benched)
    yield ROOT / "docs" / "performance.md", performance(benched)
    yield PICTURES / "way-of-a-pod.svg", concepts.way_of_a_pod()
    yield PICTURES / "rows-of-a-tenant.svg", concepts.rows_of_a_tenant()
    yield PICTURES / "slots-of-an-account.svg", concepts.slots_of_an_account()
    for name, palette in PALETTES.items():
        yield PICTURES / f"what-happens-{name}.svg", picture(palette)
    for preset in sorted((ROOT / "webhook" / "config" / "presets").glob("*.yaml")):
        yield ROOT / "charts" / "gpu-tiers" / "presets" / preset.name, preset.read_text(encoding="utf-8")
    crd = ROOT / "charts" / "gpu-tiers" / "crds" / "tenantquotas.gpu-tiers.dev.yaml"
    yield ROOT / "webhook" / "config" / crd.name, crd.read_text(encoding="utf-8")
    reporter = ROOT / "listener" / "report.py"
    yield ROOT / "examples" / "training" / "gpu_tiers_report.py", reporter.read_text(encoding="utf-8")
    counted = ROOT / "webhook" / "config" / "gpu_resources.yaml"
    yield ROOT / "charts" / "gpu-tiers" / "files" / counted.name, counted.read_text(encoding="utf-8")


def outdated() -> list[tuple[Path, str]]:
    """Return the files that are out of date, with their content."""
    return [(path, text) for path, text in files() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main() -> int:
    """Write what is out of date, or only list it; return the exit code."""
    only_check = "--check" in sys.argv[1:]
    old = outdated()
    for path, text in old:
        if not only_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        print(f"{'out of date' if only_check else 'written'}: {path.relative_to(ROOT)}")
    return 1 if only_check and old else 0


if __name__ == "__main__":
    sys.exit(main())
