"""The policy that a person names: a file, or a preset."""

from pathlib import Path

from webhook.config.errors import ConfigError
from webhook.config.load import load, preset_policy, presets
from webhook.policy.values.tier_policy import TierPolicy


def policy_named(name: str | Path) -> TierPolicy:
    """Raises ConfigError where there is neither, or the file is wrong."""
    if Path(name).exists():
        return load(Path(name))
    if str(name) not in presets():
        problem = f"there is no such file and no such preset; the presets are {', '.join(presets())}"
        raise ConfigError(str(name), [problem])
    return preset_policy(str(name))


def policy_in(name: str | Path | None) -> TierPolicy:
    """The same; where none is named, the default preset."""
    return preset_policy() if name is None else policy_named(name)
