"""Makes the chart's README of its schema and default values: what Artifact Hub and `helm show readme` show."""

from itertools import groupby

from generators.tables import table, wrapped
from generators.values import rows, sections

_COLUMNS = ("value", "accepts", "default", "meaning")
_HEAD = """\
# gpu-tiers

An admission webhook for GPU clusters. A pod that asks for GPUs gets a **tier** (a PriorityClass with a meaning), a
training pod gets a **checkpoint hook**, so that a preemption costs seconds and not days, and a **tenant** that is over
its quota for a tier is refused at the workload that it applied, with a sentence that says what would fit.

Made from `values.yaml` and `values.schema.json` by `make generate`; change those, not this page.

## Install

The chart begins in the mode `Audit`: it changes and refuses nothing, and logs what it would do.

<!-- not run: yours -->

```
helm install gpu-tiers <chart> -n gpu-tiers --create-namespace --set image.repository=<image>
helm test gpu-tiers --namespace gpu-tiers
```

You need Kubernetes 1.30 or newer, and Helm 3.14 or newer (tested: 3.17 and 4.3). Give the release the name and the
namespace `gpu-tiers`: then helm upgrades the CRD too. NOTES.txt says the next step of each mode. More is in
`docs/install.md`: what EKS, GKE, AKS and OpenShift need in `docs/install-clouds.md`, Argo CD and Flux in
`docs/install-gitops.md`, kind and minikube in `docs/install-local.md`.

## Upgrade

<!-- not run: the chart is yours -->

```
helm upgrade gpu-tiers <chart> --namespace gpu-tiers --reset-then-reuse-values
```

`--reset-then-reuse-values` keeps your values and takes those that are new from the chart. With `--reuse-values` these
would be missing, and the chart refuses that by name. An upgrade keeps tenants with what they hold, PriorityClasses and
certificates. It is refused if it would delete tenants and the value `tenants` is not given. `helm rollback` brings back
the tenants of its revision, and deletes those that were added to the values since.

## Uninstall

<!-- not run: it is installed nowhere -->

```
helm uninstall gpu-tiers --namespace gpu-tiers
```

Both webhook configurations and the admission policies go, and with them all that gpu-tiers asks of anyone. A Job then
lets the pods go that wait for quota, unless `hold.openAtUninstall` is false or hooks are off (`--no-hooks`).
PriorityClasses and the CRD stay, because pods and TenantQuotas need them.

## Values

A value of a wrong type, one that is missing, unknown, or contradicts another is refused by name before anything is
applied. Where the default is empty, the table has an example."""


def chart_readme() -> str:
    """Return the whole page: the values that are in no section, then a table for each section."""
    found = list(rows())
    single = [row for row in found if _section(row) == ""]
    others = sorted((row for row in found if _section(row)), key=_section)
    parts, said = [_HEAD, table(_COLUMNS, single)], sections()
    for name, each in groupby(others, key=_section):
        parts.append(f"### {name}\n\n{wrapped(said[name])}\n\n{table(_COLUMNS, each)}")
    return "\n\n".join(parts) + "\n"


def _section(row: tuple[str, str, str, str]) -> str:
    return row[0].strip("`").rpartition(".")[0].partition(".")[0]
