"""The store after a watch, and the subscribers that it notifies."""

from webhook.kube.reflector import Store


def test_a_store_holds_what_was_seen_last_and_tells_of_each_change() -> None:
    seen: list[dict[str, int]] = []
    store: Store[int] = Store(lambda: seen.append(dict(store.objects)))
    store.replace({"a": 1, "b": 2})
    store.update("a", 3)
    store.update("b", None)
    store.update("never-there", None)
    assert seen == [{"a": 1, "b": 2}, {"a": 3, "b": 2}, {"a": 3}, {"a": 3}]
    assert (store.get("a"), store.get("b")) == (3, None)
