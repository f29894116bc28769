"""Judges books and status once nothing happens any more."""

from tests.honest.books import books_of
from tests.honest.expected import Expected
from tests.honest.objects import Tree, is_deleting, is_gated
from tests.honest.queue_checks import QueueChecks
from tests.honest.report import Report
from webhook.ledger.protocol import Ledger


def judge_quiet(expected: Expected, queue: QueueChecks, ledger: Ledger, report: Report, when: str) -> None:
    """Judge each tenant by the ledger of a replica."""
    for tenant in expected.tenants():
        tree, exceed, bounds = expected.quota(tenant), expected.on_exceed(tenant), expected.bounds(tenant)
        status = tree.get("status") or {}
        books = books_of(ledger, tree)
        if books is None:
            report.fail("books not whole when quiet", exceed, when=when)
            continue

        # 1. The account counts what pods hold, and reserves for nobody who is gone.
        used, booked = books.used, books.booked
        for label, each in bounds.items():
            subject, details = f"{exceed} {label}", {"used": used, "booked": booked, "bounds": bounds, "when": when}
            if used[label] != each.low:
                report.fail("used is not what pods hold", subject, **details)
            if booked[label] > each.high:
                report.fail("something is reserved for nobody", subject, **details)
            if booked[label] < each.low:
                report.fail("less is booked than pods hold", subject, **details)

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
        may_be = any(booked[row.label] > row.hard for row in expected.rows(tenant))
        if not over <= (ready.get("reason") == "OverQuota") <= may_be:
            report.fail("Ready says otherwise", f"{exceed} {ready.get('reason')}", used=used, when=when)
        gated = sum(is_gated(each) and not is_deleting(each) for each in expected.pods(tenant))
        in_no_queue = gated - (status.get("queue") or {}).get("pods", 0)
        if in_no_queue:
            report.fail("status says another queue", exceed, gated=gated, held=status.get("queue"), when=when)
