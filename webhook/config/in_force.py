"""Keeps the policy in force: the file's last good content."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from webhook.config.errors import ConfigError, unreadable
from webhook.config.load import parse
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.weights import DeviceClass

Check = Callable[[TierPolicy], Sequence[str]]
"""What else may speak against a policy, a sentence each: the cluster's PriorityClasses, say."""


class PolicyInForce:
    """Reads the policy file, and again whenever its content changes (a ConfigMap mount swaps a symlink)."""

    def __init__(self, path: Path, check: Check, told: Callable[[ConfigError | None], None]) -> None:
        self._path = path
        self._check = check
        self._told = told
        self._listeners: list[Callable[[], None]] = []
        self._text = ""
        self._complaint = ""
        self._current: TierPolicy | None = None
        self._classes: Mapping[str, DeviceClass] = {}

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change of the policy in force."""
        self._listeners.append(listener)

    def start(self) -> TierPolicy:
        """The first reading. Raises ConfigError: there is no last good policy to fall back on."""
        self._text = self._read()
        self._current = self._parsed(self._text)
        return self._current

    def current(self) -> TierPolicy:
        if self._current is None:
            raise AssertionError("start() comes first")
        return self._current

    def tell_classes(self, classes: Mapping[str, DeviceClass]) -> None:
        """These DeviceClasses are in the cluster: what they count is told by them."""
        if classes != self._classes:
            self._classes = dict(classes)
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
            if text == self._text and not self._complaint:
                return
            policy = self._parsed(text)
        except ConfigError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                self._told(error)
            return
        self._text, self._complaint = text, ""
        self._told(None)
        self._take(policy)

    def _take(self, policy: TierPolicy) -> None:
        self._current = replace(policy, classes=self._classes)
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
