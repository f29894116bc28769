"""The view of one process on one kind of object: as far as the test lets its watches bring it."""

from dataclasses import dataclass

from tests.ledger.history import History


@dataclass
class View:
    """The view of a process on a kind. A paused one gets nothing from its watches until the test lets them."""

    history: History
    position: int
    limit: int | None = None
    oldest: int = 0
    epoch: int = 0
    expired: int = -1
    bookmarks: int = 0

    def hold(self) -> None:
        """Bring no more events by yourself."""
        self.limit = self.position

    def flow(self) -> None:
        """Bring all events at once, from now on."""
        self.limit = None
        self.history.tell()

    def step(self) -> bool:
        """Let the next event through. False where none waits, and where all come by themselves."""
        if self.limit is None:
            return False
        change = next(self.history.after(max(self.limit, self.position)), None)
        if change is None:
            return False
        self.limit = change.version
        self.history.tell()
        return True

    def catch_up(self) -> None:
        """Let all events through that there are, and no later ones."""
        self.limit = self.history.version
        self.history.tell()

    @property
    def behind(self) -> int:
        """Return how many events have not been shown."""
        return sum(1 for _ in self.history.after(self.position))

    def expire(self) -> None:
        """Answer 410 to all who watch: etcd has been compacted."""
        self.oldest = self.history.version
        self.expired = self.epoch
        self.break_off()

    def break_off(self) -> None:
        """Break all watches. They go on where they were, unless that has expired."""
        self.epoch += 1
        self.history.tell()

    def bookmark(self) -> None:
        """Tell the version without an event."""
        self.bookmarks += 1
        self.history.tell()
