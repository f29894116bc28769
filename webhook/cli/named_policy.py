"""The policy that a person names: a file, or a preset."""

from pathlib import Path

from webhook.config.errors import ConfigError
from webhook.config.load import load, preset_file, preset_policy, presets, read_file
from webhook.config.model import PolicyFile
from webhook.policy.values.tier_policy import TierPolicy


def policy_named(name: str | Path) -> TierPolicy:
    """Raises ConfigError where there is neither, or the file is wrong."""
    return load(Path(name)) if Path(name).exists() else preset_policy(_preset(name))


def fields_named(name: str | Path) -> PolicyFile:
    """The same, field by field."""
    return read_file(Path(name)) if Path(name).exists() else preset_file(_preset(name))


def _preset(name: str | Path) -> str:
    if str(name) not in presets():
        problem = f"there is no such file and no such preset; the presets are {', '.join(presets())}"
        raise ConfigError(str(name), [problem])
    return str(name)


def policy_in(name: str | Path | None) -> TierPolicy:
    """The same; where none is named, the default preset."""
    return preset_policy() if name is None else policy_named(name)
