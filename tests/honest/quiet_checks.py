"""Judges books and status once nothing happens any more."""

from webhook.ledger.account_usage import usage_of, used_of

from tests.honest.expected import Expected
from tests.honest.objects import Tree, is_deleting, is_gated
from tests.honest.queue_checks import QueueChecks
from tests.honest.report import Report
from webhook.ledger.account import read_account
from webhook.policy.quota.tenant_quotas import read_tenant


def judge_quiet(expected: Expected, queue: QueueChecks, report: Report, when: str) -> None:
    for tenant in expected.tenants():
        tree, exceed, bounds = expected.quota(tenant), expected.on_exceed(tenant), expected.bounds(tenant)
        status = tree.get("status") or {}
        account, read = read_account(status), read_tenant(tree)
        if not account.is_sealed(tree["metadata"]["uid"]):
            report.fail("books not whole when quiet", exceed, when=when)
            continue

        # 1. The account counts what pods hold, and reserves for nobody who is gone.
        used = {row.label: float(gpus) for row, gpus in used_of(account, read).items()}
        usage = {row.label: float(gpus) for row, gpus in usage_of(account, read).items()}
        for label, each in bounds.items():
            details = {"used": used, "usage": usage, "bounds": bounds, "gangs": account.gangs, "when": when}
            if used[label] != each.low:
                report.fail("used is not what pods hold", f"{exceed} {label}", **details)
            if usage[label] > each.high:
                report.fail("something is reserved for nobody", f"{exceed} {label}", **details)
            if usage[label] < each.low:
                report.fail("less is booked than pods hold", f"{exceed} {label}", **details)
        if account.reservations:
            report.fail("a reservation is left when quiet", exceed, reservations=account.reservations, when=when)

        # 2. Nobody waits without a reason.
        for unit in queue.without_reason(tenant):
            name, subject = unit.tree["metadata"]["name"], f"{exceed} {unit.tree['kind']}"
            report.fail("waits with room when quiet", subject, name=name, needs=unit.needs, bounds=bounds, when=when)

        # 3. The status says the same.
        for row, shown in zip(expected.rows(tenant), status.get("usage", ()), strict=False):
            if float(shown.get("used", 0)) != used[row.label] or float(shown["hard"]) != row.hard:
                report.fail("status says other numbers", f"{exceed} {row.label}", shown=shown, used=used)
        ready: Tree = next((each for each in status.get("conditions", ()) if each["type"] == "Ready"), {})
        over = any(used[row.label] > row.hard for row in expected.rows(tenant))
        if over != (ready.get("reason") == "OverQuota"):
            report.fail("Ready says otherwise", f"{exceed} {ready.get('reason')}", used=used, when=when)
        gated = sum(is_gated(each) and not is_deleting(each) for each in expected.pods(tenant))
        if gated != (status.get("held") or {}).get("pods", 0):
            report.fail("status says another queue", exceed, gated=gated, held=status.get("held"), when=when)
