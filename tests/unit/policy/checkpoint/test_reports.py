"""A pod that is to report gets a token for it; nothing else changes."""

from msgspec import structs
from msgspec.structs import replace

from tests.builders import a_pod, a_policy, some_facts
from webhook.policy.checkpoint.hook_plan import HookPlan, plan_hook
from webhook.policy.checkpoint.listen import REPORT_VOLUME, listener, report_volume
from webhook.policy.values.tier_policy import ReportTarget

TARGET = ReportTarget("https://gpu-tiers-reports.gpu-tiers.svc:9444/v1/progress", "-----BEGIN CERTIFICATE-----")
LISTEN, FILE = ({"gpu-tiers.dev/checkpoint": kind} for kind in ("listen", "file"))
REPORTS, SILENT = ({"gpu-tiers.dev/checkpoint-reports": each} for each in ("true", "false"))
OTHERS = {"name": REPORT_VOLUME, "emptyDir": {}}


def plan(*, target: ReportTarget | None, annotations: dict[str, str], volumes: tuple[object, ...] = ()) -> HookPlan:
    pod = a_pod().asking(gpus=1).annotated(annotations).having("spec.volumes", list(volumes))
    decided = plan_hook(pod.view(), None, some_facts(), replace(a_policy(), reports=target)).plan
    assert decided is not None
    return decided


def test_a_pod_that_listens_gets_what_a_report_takes() -> None:
    silent, reporting = (plan(target=each, annotations=LISTEN) for each in (None, TARGET))
    assert silent.volumes == (listener(""),)
    assert reporting.volumes == (listener(""), report_volume())
    added = set(reporting.variables) - set(silent.variables)
    assert added == {(0, "GPU_TIERS_REPORT", TARGET.url), (0, "GPU_TIERS_REPORT_CA", TARGET.ca)}


def test_a_program_that_saves_by_itself_gets_the_same_where_its_pod_asks_for_it_and_no_pythonpath() -> None:
    silent = plan(target=TARGET, annotations=FILE)
    assert silent.volumes == silent.variables == ()
    assert plan(target=None, annotations=FILE | REPORTS) == silent
    variables = ((0, "GPU_TIERS_REPORT", TARGET.url), (0, "GPU_TIERS_REPORT_CA", TARGET.ca))
    expected = structs.replace(silent, volumes=(report_volume(),), variables=variables)
    assert plan(target=TARGET, annotations=FILE | REPORTS) == expected


def test_a_pod_that_listens_may_keep_silent() -> None:
    assert plan(target=TARGET, annotations=LISTEN | SILENT) == plan(target=None, annotations=LISTEN)


def test_a_volume_of_that_name_that_is_another_stays_and_the_pod_is_silent() -> None:
    assert plan(target=TARGET, annotations=LISTEN, volumes=(OTHERS,)) == plan(target=None, annotations=LISTEN)
    ours = report_volume().volume
    assert plan(target=TARGET, annotations=LISTEN, volumes=(ours,)) == plan(target=TARGET, annotations=LISTEN)
