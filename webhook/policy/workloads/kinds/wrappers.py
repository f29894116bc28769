"""Kinds that carry whole objects and create them: what these are, their own rows say. Data."""

from webhook.policy.workloads.kinds.row import KindRow, present


def wrapper_kinds(rows: tuple[KindRow, ...]) -> tuple[KindRow, ...]:
    """The wrappers of objects that these rows describe."""
    return (
        KindRow(
            "workload.codeflare.dev",
            "AppWrapper",
            "appwrappers",
            "https://github.com/project-codeflare/appwrapper/tree/main/api/v1beta2",
            labels=present("workload.codeflare.dev/appwrapper"),
            gang=True,
            wraps=("spec.components.*.template", "spec.resources.GenericItems.*.generictemplate"),
            wrapped=rows,
        ),
    )
