"""Policies, as a policy file says them."""

from functools import cache

import yaml

from webhook.config.load import parse
from webhook.config.yaml_text import Dumper
from webhook.policy.values.tier_policy import TierPolicy


def a_policy(preset: str = "four-tier", **fields: object) -> TierPolicy:
    """A preset's policy, with further fields as the policy file has them."""
    return _parsed(policy_file(preset=preset, **fields))


def policy_file(**fields: object) -> str:
    """A policy file's text."""
    head = {"apiVersion": "config.gpu-tiers.dev/v1alpha1", "kind": "TierPolicy", "mode": "Enforce"}
    return yaml.dump(head | fields, Dumper=Dumper, sort_keys=False)


@cache
def _parsed(text: str) -> TierPolicy:
    return parse(text)
