"""The active policy: the last good content of the policy file."""

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
"""Returns further problems of a policy, a sentence each, such as those with the cluster's PriorityClasses."""


class ActivePolicy:
    """Reads the policy file at intervals, and takes its content if that has changed (a ConfigMap swaps a symlink)."""

    def __init__(self, path: Path, check: Check, obstacles: Check, note: Callable[[ConfigError | None], None]) -> None:
        """Set up without reading. `check` decides whether a file is taken; `obstacles` are problems of the active one.

        `note` gets each new problem, and None when `look` takes a file. `text` is the active policy, since the Unix
        time `since`.
        """
        self._path = path
        self._check = check
        self._obstacles = obstacles
        self._note = note
        self._listeners: list[Callable[[], None]] = []
        self.text, self.since = "", 0.0
        self.lost_source = ""  # the problem of the file's ConfigMap; the mounted file outlives it
        self._complaint = ""
        self._current: TierPolicy | None = None
        self._classes: Mapping[str, DeviceClass] = {}
        self._reports: ReportTarget | None = None

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change of the active policy, of the DeviceClasses or of the target of reports."""
        self._listeners.append(listener)

    @property
    def digest(self) -> str:
        """The digest of the active policy."""
        return digest_of(self.text)

    @property
    def taken(self) -> bool:
        """True if the file is active."""
        return not self._complaint

    @property
    def problem(self) -> str:
        """The reason why the file is not active, and the problems of the active one; "" if there is none."""
        amiss = "; ".join(filter(None, (self.lost_source, *self._obstacles(self.current()))))
        if not self._complaint:
            return amiss
        complaint = self._complaint.replace(f"{self._path}: ", "").replace("\n", "; ")
        return f"{complaint}; and the active policy is not as it should be: {amiss}" if amiss else complaint

    def start(self, last_good: str = "") -> TierPolicy:
        """Read the file for the first time. If it is broken, the `last_good` text is active, as in other replicas.

        Raises ConfigError if there is no such text, or if it can't be read either.
        """
        self.text = last_good
        try:
            text = self._read()
            policy = self._parsed(text)
        except ConfigError as error:
            # A policy that was active before the restart is not checked against the cluster, as in other replicas.
            text = last_good
            try:
                policy = parse(text)
            except ConfigError:  # it is of another version of gpu-tiers, or there is none
                raise error from None
            self._complain(error)
        self.text, self.since, self._current = text, time.time(), policy
        return policy

    def current(self) -> TierPolicy:
        if self._current is None:
            raise AssertionError("start() comes first")
        return self._current

    def tell_classes(self, classes: Mapping[str, DeviceClass]) -> None:
        """Note the cluster's DeviceClasses, which decide how many GPUs a device counts as."""
        if classes != self._classes:
            self._classes = dict(classes)
            self._take(self.current())

    def tell_reports(self, target: ReportTarget | None) -> None:
        """Note the target to which trainings report, for all replicas; None if they can't."""
        if target != self._reports:
            self._reports = target
            self._take(self.current())

    async def run(self, every: float = 0.5) -> None:
        """Look at the file every so many seconds, until cancelled."""
        while True:
            await asyncio.sleep(every)
            self.look()

    def look(self) -> None:
        """Take a changed file, or report its problems and leave the last good policy active."""
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
        self._note(None)
        self._take(policy)

    def _complain(self, error: ConfigError) -> None:
        if str(error) != self._complaint:
            self._complaint = str(error)
            self._note(error)

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
        # The active text stays active whatever happens to the cluster, and `problem` says what is wrong there.
        problems = self._check(policy) if text != self.text else ()
        if problems:
            raise ConfigError(str(self._path), problems)
        return policy
