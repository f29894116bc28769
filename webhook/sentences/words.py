"""The words of refusals, warnings, parts of sentences and fixes, by their ids: the YAML files beside this one."""

from collections.abc import Mapping

from webhook.objects.data_files import data_file

LONGEST = 120
"""Characters of a warning about a workload, with its id."""

EXCEEDED = "exceeded quota: "
"""How each refusal begins that ends when others of the tenant end.

Argo Workflows, Tekton, Flyte and Airflow look for these words, in lower case, in a create that is refused with 403, as
the API server's own ResourceQuotas refuse it. They create the object again later. Without the words the step fails.
"""

_REFUSALS: Mapping[str, Mapping[str, str]] = data_file(__name__, "refusals.yaml")
_WARNINGS: Mapping[str, Mapping[str, str]] = data_file(__name__, "warnings.yaml")
_PARTS: Mapping[str, Mapping[str, str]] = data_file(__name__, "parts.yaml")

REFUSALS: Mapping[str, str] = {
    each: EXCEEDED + text if section == "room" else text
    for section, texts in _REFUSALS.items()
    for each, text in texts.items()
}
WARNINGS, OF_SETTING_UP, WITHOUT_ID = (_WARNINGS[each] for each in ("workloads", "settingUp", "withoutId"))
REASONS = _PARTS["reasons"]
PARTS: Mapping[str, str] = {**REASONS, **_PARTS["others"]}
FIXES: Mapping[str, str] = data_file(__name__, "fixes.yaml")["fixes"]
