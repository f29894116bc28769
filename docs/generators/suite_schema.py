"""Makes docs/schemas/tierpolicytest.json, by which an editor completes and checks a suite of policy tests."""

import json

from webhook.cli.policy_tests.suite import SuiteSection


def suite_schema() -> str:
    """Return the JSON schema of a suite's file, as text."""
    schema = SuiteSection.model_json_schema(by_alias=True)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "TierPolicyTest"}
    return json.dumps(head | {key: value for key, value in schema.items() if key != "title"}, indent=2) + "\n"
