"""A suite of policy tests, field by field (config.gpu-tiers.dev/v1alpha1, TierPolicyTest)."""

from collections import Counter
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from webhook.config.load import DEFAULT_PRESET
from webhook.config.sections import Section
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused
from webhook.policy.values.tier_policy import HookKind
from webhook.report.object_verdict import VerdictName

Text = Annotated[str, StringConstraints(min_length=1)]
Step = Literal["group", "label", "rule", "class", "workload-type", "namespace-default", "policy-default"]
Type = Literal["training", "serving", "batch", "interactive", "unknown"]


class UsedSection(Section):
    """GPUs that other pods of the same tenant hold, with their tier and flavor, as a row of a quota has them.

    They count on every row that such pods count on: those of gpu-training on the tenant's total too.
    """

    gpus: Decimal = Field(gt=0)
    tier: Text | None = None
    resource_flavor: Text | None = None

    @field_validator("gpus", mode="before")
    @classmethod
    def _as_in_a_quota(cls, value: Any) -> Any:
        try:
            return quantity(value, "gpus")
        except Refused:
            raise ValueError(
                f'"{value}" is no number of GPUs; write it as in a TenantQuota, such as 4 or "0.5"'
            ) from None


class ExpectSection(Section):
    """What is expected of a workload. What is left out is not compared, but the verdict always is."""

    verdict: VerdictName | None = None
    tier: Text | None = None
    step: Step | None = None
    type: Type | None = None
    hook: HookKind | None = None
    message: Text | None = None
    warnings: tuple[Text, ...] | None = None

    @model_validator(mode="after")
    def _refused_with_a_message(self) -> Self:
        if self.message is not None and self.verdict not in (None, VerdictName.DENIED):
            raise ValueError(
                f"message is a part of the refusal, so it goes with the verdict Denied, not {self.verdict}"
            )
        return self

    @property
    def expected_verdict(self) -> VerdictName:
        """The verdict; where none is written it is Allowed, and Denied where a message is."""
        return self.verdict or (VerdictName.DENIED if self.message else VerdictName.ALLOWED)


class CaseSection(Section):
    """One workload as it is applied, and what is expected of it.

    `object` (Kind/name) tells which object of a file it is, where that holds several workloads. `namespace` is where it
    is applied if the manifest doesn't say so, as `kubectl apply -n` has it.
    """

    name: Text
    workload: str | dict[str, Any]
    object: str | None = None
    namespace: Text | None = None
    used: tuple[UsedSection, ...] = ()
    expect: ExpectSection

    @field_validator("workload", mode="before")
    @classmethod
    def _a_file_or_an_object(cls, value: Any) -> Any:
        if isinstance(value, dict):
            words = [isinstance(value.get(field), str) for field in ("apiVersion", "kind")]
            if not all(words) or not isinstance(value.get("metadata"), dict):
                raise ValueError("an object needs apiVersion, kind and metadata")
        elif not value or not isinstance(value, str):
            raise ValueError("should be the path of a manifest, or an object with apiVersion, kind and metadata")
        return value

    @field_validator("object")
    @classmethod
    def _kind_and_name(cls, value: str | None) -> str | None:
        if value is not None and not all(value.partition("/")):
            raise ValueError(f'"{value}" should be a kind and a name, such as Job/train')
        return value


class SuiteSection(Section):
    """A policy, the tenants of a cluster, and the cases. Paths start at the folder of the suite's file."""

    api_version: Literal["config.gpu-tiers.dev/v1alpha1"]
    kind: Literal["TierPolicyTest"]
    policy: Text | None = None
    preset: Text = DEFAULT_PRESET
    tenants: tuple[Text, ...] = ()
    cases: tuple[CaseSection, ...]

    @model_validator(mode="after")
    def _one_policy(self) -> Self:
        if {"policy", "preset"} <= self.model_fields_set:
            raise ValueError(
                "write policy (a file) or preset (a name), not both; a policy file names its preset itself"
            )
        return self

    @field_validator("cases")
    @classmethod
    def _some_of_different_names(cls, cases: tuple[CaseSection, ...]) -> tuple[CaseSection, ...]:
        if not cases:
            raise ValueError("must not be empty")
        twice = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
        if twice:
            raise ValueError(f'"{twice[0]}" is the name of two cases; give each its own')
        return cases


SECTIONS: dict[tuple[str, ...], type[Section]] = {
    (): SuiteSection,
    ("cases",): CaseSection,
    ("cases", "used"): UsedSection,
    ("cases", "expect"): ExpectSection,
}
"""The sections by the fields that lead to them."""
