"""Keeps the active policy: the file's last good content."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from webhook.config.errors import ConfigError, unreadable
from webhook.config.load import parse
from webhook.config.published import digest_of
from webhook.policy.values.tier_policy import ReportTarget, TierPolicy
from webhook.policy.values.weights import DeviceClass

Check = Callable[[TierPolicy], Sequence[str]]
"""What else may speak against a policy, a sentence each: the cluster's PriorityClasses, say."""


class ActivePolicy:
    """Reads the policy file, and again whenever its content changes (a ConfigMap mount swaps a symlink)."""

    def __init__(self, path: Path, check: Check, obstacles: Check, told: Callable[[ConfigError | None], None]) -> None:
        """`check` decides whether a file is taken, `obstacles` tells what came in the way of the active one.

        `text` is what is active, and `since` a Unix time.
        """
        self._path = path
        self._check = check
        self._obstacles = obstacles
        self._told = told
        self._listeners: list[Callable[[], None]] = []
        self.text = ""
        self.since = 0.0
        self._complaint = ""
        self._lost_source = ""
        self._current: TierPolicy | None = None
        self._classes: Mapping[str, DeviceClass] = {}
        self._reports: ReportTarget | None = None

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change of the active policy."""
        self._listeners.append(listener)

    @property
    def digest(self) -> str:
        """The active policy in a few characters."""
        return digest_of(self.text)

    @property
    def taken(self) -> bool:
        """Whether the file is what is active."""
        return not self._complaint

    @property
    def problem(self) -> str:
        """Why the file is not active, or not as it should be; "" where all is well."""
        if self._complaint:
            return self._complaint.replace(f"{self._path}: ", "").replace("\n", "; ")
        return "; ".join(filter(None, (self._lost_source, *self._obstacles(self.current()))))

    def tell_source(self, problem: str) -> None:
        """What is wrong with the ConfigMap that the file comes from; "" for nothing. The file outlives it."""
        self._lost_source = problem

    def start(self, last_good: str = "") -> TierPolicy:
        """The first reading. A broken file leaves the `last_good` text active, as in a replica that ran on.

        Raises ConfigError where there is no such text.
        """
        try:
            text = self._read()
            policy = self._parsed(text)
        except ConfigError as error:
            # What was active before the restart is not held against the cluster, as in a replica that ran on.
            text = last_good
            try:
                policy = parse(text)
            except ConfigError:  # of another version of gpu-tiers, or there is none
                raise error from None
            self._complain(error)
        self.text, self.since, self._current = text, time.time(), policy
        return policy

    def current(self) -> TierPolicy:
        if self._current is None:
            raise AssertionError("start() comes first")
        return self._current

    def tell_classes(self, classes: Mapping[str, DeviceClass]) -> None:
        """These DeviceClasses are in the cluster: what they count is told by them."""
        if classes != self._classes:
            self._classes = dict(classes)
            self._take(self.current())

    def tell_reports(self, target: ReportTarget | None) -> None:
        """Trainings may report to this replica and the others there; None where they may not."""
        if target != self._reports:
            self._reports = target
            self._take(self.current())

    async def run(self, every: float = 2.0) -> None:
        """Look at the file every so many seconds, until it is cancelled."""
        while True:
            await asyncio.sleep(every)
            self.look()

    def look(self) -> None:
        """Take up a changed file, or report it and keep the last good policy."""
        try:
            text = self._read()
            if text == self.text and not self._complaint:
                return
            policy = self._parsed(text)
        except ConfigError as error:
            self._complain(error)
            return
        if text != self.text:
            self.text, self.since = text, time.time()
        self._complaint = ""
        self._told(None)
        self._take(policy)

    def _complain(self, error: ConfigError) -> None:
        if str(error) != self._complaint:
            self._complaint = str(error)
            self._told(error)

    def _take(self, policy: TierPolicy) -> None:
        self._current = replace(policy, classes=self._classes, reports=self._reports)
        for listener in self._listeners:
            listener()

    def _read(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(self._path), [unreadable(error)]) from None

    def _parsed(self, text: str) -> TierPolicy:
        policy = parse(text, str(self._path))
        problems = self._check(policy)
        if problems:
            raise ConfigError(str(self._path), problems)
        return policy
