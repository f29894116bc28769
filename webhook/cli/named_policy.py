"""The policy that a person names: a file, or a preset."""

from pathlib import Path

from webhook.cli.documents import BadInput
from webhook.config.load import load, preset_policy, presets
from webhook.policy.values.tier_policy import TierPolicy


def policy_named(name: str) -> TierPolicy:
    """Raises BadInput where there is neither, ConfigError where the file is wrong."""
    if Path(name).exists():
        return load(Path(name))
    if name not in presets():
        raise BadInput(f"{name}: there is no such file and no such preset; the presets are {', '.join(presets())}")
    return preset_policy(name)
