"""A page's content with something of everything, and with names that nobody should trust."""

from webhook.config.load import parse
from webhook.page.routes import PageContent
from webhook.policy.checkpoint.work_lost import Work
from webhook.policy.values.tiers import PriorityClass
from webhook.report.gpus_now import GpusNow, TierGpus, Waits
from webhook.report.latest import PodShown, Preemption, VerdictGroup, VerdictShown
from webhook.report.posture import Posture, posture_of
from webhook.report.tenants import RowShown, TenantShown

EVIL = "<script>alert('x')</script>"


def a_posture(preset: str = "four-tier", mode: str = "Enforce") -> Posture:
    policy = parse(f"apiVersion: config.gpu-tiers.dev/v1alpha1\nkind: TierPolicy\npreset: {preset}\nmode: {mode}\n")
    return posture_of(policy, classes={"system-node-critical": PriorityClass("system-node-critical", 2_000_001_000)})


def a_tenant(name: str, *problems: str) -> TenantShown:
    rows = (RowShown("gpu-training", 6, 4, 2, 0), RowShown("total", 16, 9.5, 2, 4.5))
    return TenantShown(name, rows, "Deny", problems)


def a_verdict(
    name: str, outcome: str = "admitted", why: str = "workload-type: training", times: int = 1
) -> VerdictGroup:
    trace = ("label: none on the pod or its owners", "workload-type: training -> gpu-training") if "type" in why else ()
    shown = VerdictShown(
        1_795_363_200,
        "PyTorchJob",
        "team-alpha",
        name,
        outcome,
        "gpu-training",
        "alpha",
        why,
        trace,
        f"PyTorchJob/{name}",
        "over-quota" if outcome == "refused" else "",
    )
    return VerdictGroup(shown, times, shown.time)


SOME_LOST, MUCH_LOST = Work(24, exact=True), Work(11_520, exact=False)


def a_preemption(saved: str = "saved", words: str = "it saved in 12 s", lost: Work | None = SOME_LOST) -> Preemption:
    victim = PodShown("team-beta", "sweep-worker-3", "v", "gpu-batch", "beta", "8")
    preemptor = PodShown("team-alpha", "llm-finetune-worker-0", "p", "gpu-training", "alpha", "8")
    return Preemption("2026-11-22T12:00:00Z", "gpu-node-7", victim, preemptor, saved, 12, 14.2, words, lost)


def some_gpus(workload: str = "PyTorchJob/llm-finetune", why: str = "0/3 nodes have 8 GPUs", waits: int = 1) -> GpusNow:
    tiers = (
        ("gpu-training", 4, 16, "2026-11-22T12:00:00Z"),
        ("gpu-serving", 3, 0),
        ("gpu-batch", 6.5, 0),
        ("gpu-interactive", 1, 0),
    )
    shown = Waits("team-alpha", workload, "alpha", "gpu-training", 2, 16, "2026-11-22T12:00:00Z", why)
    return GpusNow(tuple(TierGpus(*each) for each in tiers), 5.5, 4, (shown,) * waits)


def a_content(**parts: object) -> PageContent:
    refusal = "PyTorchJob llm-finetune asks for 16 GPUs (2 x 8); tenant alpha has 6 of gpu-training left."
    given: dict[str, object] = {
        "replica": "gpu-tiers-7d9c5b-x2x8k",
        "leads": True,
        "leader": "gpu-tiers-7d9c5b-x2x8k",
        "forward": "",
        "health": {"policy": "", "ledger": "", "certificate": "", "webhook configurations": ""},
        "gpus": some_gpus(),
        "posture": a_posture(),
        "tenants": (a_tenant("alpha"), a_tenant("beta", "OverQuota: the total is at 18 of 16")),
        "verdicts": (a_verdict("llm-finetune"), a_verdict("llm-finetune", "refused", refusal)),
        "preemptions": (
            a_preemption(),
            a_preemption("nothing-listens", "it did NOT save: its program knows nothing", MUCH_LOST),
        ),
        "at_risk": {("alpha", "gpu-training", False): 11_520.0, ("beta", "gpu-batch", True): 80.0},
    }
    return PageContent(**given | parts)  # type: ignore[arg-type]
