"""Specs of TenantQuotas that the API server takes or refuses, and what it and `gpu-tiers review` say of them."""

from tests.builders.built import Tree

SELECTOR = {"namespaceSelector": {"matchLabels": {"example.com/tenant": "alpha"}}}

ACCEPTED: list[Tree] = [
    {},
    {"maxTier": "gpu-training", "quotas": [{"gpus": "16"}, {"tier": "gpu-training", "gpus": "6"}]},
    {"allowedTiers": ["gpu-training", "gpu-batch"], "defaultTier": "gpu-batch"},
    {"quotas": [{"resourceFlavor": "h100", "gpus": "0.5"}, {"resourceFlavor": "a100", "gpus": "0"}]},
    {"quotas": [{"gpus": 6}, {"tier": "gpu-training", "gpus": 0}, {"tier": "gpu-batch", "gpus": "8000m"}]},
    {"quotas": [{"tier": f"tier-{number}", "gpus": "1k"} for number in range(64)]},
    {"onExceed": "Demote", "quotaAuthority": "Kueue"},
    {
        "onExceed": "Demote",
        "demoteTo": ["gpu-interactive", "gpu-batch"],
        "allowedTiers": ["gpu-batch", "gpu-interactive"],
    },
    {"onExceed": "Demote", "backstop": "ResourceQuota"},
    {"onExceed": "Warn", "quotaAuthority": "KAI", "backstop": "None"},
    {"onExceed": "Hold"},
    {"onExceed": "Hold", "holdOrder": "Strict", "reserveSeconds": 0},
    {"onExceed": "Hold", "reserveSeconds": 900, "backstop": "None", "quotaAuthority": "gpu-tiers"},
    {"onExceed": "Hold", "holdOrder": "BestEffort"},
    {"quotas": [{"tier": "gpu-batch", "gpus": 8, "onExceed": "Hold"}], "reserveSeconds": 60},
    {"onExceed": None, "maxTier": None, "quotas": [{"gpus": 1, "tier": None}]},
    {"allowedTiers": ["gpu-batch"], "quotas": [{"gpus": 1, "tier": None}]},
    {"onExceed": "Demote", "quotas": [{"gpus": 1, "onExceed": None}]},
    {"namespaceSelector": {"matchLabels": {"team": None}}},
    {
        "budgets": [{"gpuHours": 5000, "per": "Month", "timeZone": "Europe/Berlin", "onExhausted": "Hold"}],
        "reserveSeconds": 900,
    },
    {"budgets": [{"gpuHours": "0.5", "per": each} for each in ("Day", "Week", "Month", "Quarter")]},
    {
        "budgets": [
            {"gpuHours": 1, "from": f"2026-0{each}-01T00:00:00Z", "until": "2026-12-01T00:00:00+01:00"}
            for each in (1, 2)
        ]
    },
    {
        "quotas": [{"tier": "a", "gpus": 1}],
        "grants": [{"tier": "a", "gpus": 8, "until": "2026-12-01T00:00:00Z", "reason": "x"}],
    },
    {"namespaceSelector": {}},
    {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}},
    {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists", "values": []}]}},
]

_TIER = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
_AMOUNT = 'must be a quantity of 0 or more, such as 6 or "0.5"'
_NO_INTEGER = "spec.quotas[0].gpus: 9.223372036854776e+18 should be a whole number, or text in quotes"
_NOT_QUEUED = "holdOrder and reserveSeconds are for pods that wait; write onExceed: Hold, or leave them out"
_TWO_ROWS = "two rows are for the same tier and resourceFlavor: keep one"
_HOURS = 'must be a quantity of 0 or more, such as 5000 or "0.5"'
_PERIOD = "write per (Day, Week, Month or Quarter), or both from and until"
_ORDER = "until has to be after from"
_ONE_BUDGET = "two budgets are for the same tier, resourceFlavor and period: keep one"
_HELD = {"gpuHours": 1, "per": "Day", "onExhausted": "Hold"}
_LOWERED = {"gpuHours": 1, "per": "Week", "tier": "gpu-training", "onExhausted": "Demote"}
_HELD_WHERE_PODS_RUN = "budgets: onExhausted Hold goes with Deny or Hold of the tenant; above its rows pods would run"
_LOWERED_AND_HELD = (
    "budgets: onExhausted Demote goes with no Hold: what is queued keeps its tier; leave one of them out"
)
_ELSEWHERE = "budgets and grants: quotaAuthority leaves the counting to another system; leave one of them out"
_NO_ROW = "grants: one is for a tier and resourceFlavor that no row of quotas has"
_YEAR = {"from": "2026-01-01T00:00:00Z", "until": "2027-01-01T00:00:00Z"}
_TURNED = {"from": "2027-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}

REFUSED: list[tuple[Tree, str, str]] = [
    (
        {"maxTier": "gpu-batch", "allowedTiers": ["gpu-batch"]},
        "maxTier and allowedTiers say the same thing in two ways: set one of them",
        "spec: maxTier and allowedTiers say the same thing in two ways: set one of them",
    ),
    (
        {"allowedTiers": ["gpu-batch"], "defaultTier": "gpu-training"},
        "defaultTier must be one of allowedTiers",
        "spec: defaultTier must be one of allowedTiers",
    ),
    (
        {"allowedTiers": ["gpu-batch"], "quotas": [{"tier": "gpu-training", "gpus": "1"}]},
        "quotas: a row names a tier that allowedTiers does not allow",
        "spec: quotas: a row names a tier that allowedTiers does not allow",
    ),
    (
        {"demoteTo": ["gpu-batch"]},
        "demoteTo is for pods that are demoted; write onExceed: Demote, or leave it out",
        "spec: demoteTo is for pods that are demoted; write onExceed: Demote, or leave it out",
    ),
    (
        {"onExceed": "Demote", "demoteTo": ["gpu-batch"], "allowedTiers": ["gpu-training"]},
        "demoteTo: names a tier that allowedTiers does not allow",
        "spec: demoteTo: names a tier that allowedTiers does not allow",
    ),
    (
        {"onExceed": "Demote", "demoteTo": ["gpu-batch", "gpu-batch"]},
        "a tier stands there twice: keep one",
        "spec.demoteTo: a tier stands there twice: keep one",
    ),
    ({"quotas": [{"gpus": "1"}, {"gpus": "2"}]}, _TWO_ROWS, f"spec.quotas: {_TWO_ROWS}"),
    ({"quotas": [{"gpus": "1"}, {"gpus": "2", "tier": None}]}, _TWO_ROWS, f"spec.quotas: {_TWO_ROWS}"),
    (
        {"quotas": [{"tier": "a", "resourceFlavor": "b", "gpus": gpus} for gpus in ("1", "2")]},
        _TWO_ROWS,
        f"spec.quotas: {_TWO_ROWS}",
    ),
    ({"budgets": [{"gpuHours": "-1", "per": "Day"}]}, _HOURS, f'spec.budgets[0].gpuHours: "-1" {_HOURS}'),
    ({"budgets": [{"gpuHours": 1}]}, _PERIOD, f"spec.budgets[0]: {_PERIOD}"),
    ({"budgets": [{"gpuHours": 1, "per": "Day", **_YEAR}]}, _PERIOD, f"spec.budgets[0]: {_PERIOD}"),
    ({"budgets": [{"gpuHours": 1, **_TURNED}]}, _ORDER, f"spec.budgets[0]: {_ORDER}"),
    ({"budgets": [{"gpuHours": 1, "per": "Day"}] * 2}, _ONE_BUDGET, f"spec.budgets: {_ONE_BUDGET}"),
    ({"budgets": [{"gpuHours": 1, **_YEAR}] * 2}, _ONE_BUDGET, f"spec.budgets: {_ONE_BUDGET}"),
    (
        {"budgets": [{"gpuHours": 1, "per": "Day"}], "quotaAuthority": "Kueue"},
        _ELSEWHERE,
        f"spec: {_ELSEWHERE}",
    ),
    ({"grants": [{"gpus": 1, "until": "2026-12-01T00:00:00Z"}]}, _NO_ROW, f"spec: {_NO_ROW}"),
    (
        {"quotas": [{"gpus": 1}], "grants": [{"gpus": 1, "until": "tomorrow"}]},
        "must be of type date-time",
        'spec.grants[0].until: "tomorrow" is no time; write one such as 2026-12-01T00:00:00Z',
    ),
    ({"quotas": [{"gpus": "-1"}]}, _AMOUNT, f'spec.quotas[0].gpus: "-1" {_AMOUNT}'),
    ({"quotas": [{"gpus": -1}]}, _AMOUNT, f'spec.quotas[0].gpus: "-1" {_AMOUNT}'),
    ({"quotas": [{"gpus": 2**63}]}, "spec.quotas[0].gpus", _NO_INTEGER),
    ({"quotas": [{"gpus": "six"}]}, _AMOUNT, f'spec.quotas[0].gpus: "six" {_AMOUNT}'),
    ({"quotas": [{"gpus": ""}]}, _AMOUNT, f'spec.quotas[0].gpus: "" {_AMOUNT}'),
    (
        {"quotas": [{"gpus": 0.5}]},
        'spec.quotas[0].gpus: Invalid value: "number"',
        "spec.quotas[0].gpus: 0.5 should be a whole number, or text in quotes",
    ),
    (
        {"quotas": [{"gpus": True}]},
        'spec.quotas[0].gpus: Invalid value: "boolean"',
        'spec.quotas[0].gpus: "True" should be a whole number, or text in quotes',
    ),
    (
        {"quotas": [{"gpus": "1" * 33}]},
        "spec.quotas[0].gpus: Too long",
        "spec.quotas[0].gpus: has 33 characters; 32 is the most",
    ),
    ({"quotas": [{"tier": "gpu-batch"}]}, "spec.quotas[0].gpus: Required value", "spec.quotas[0].gpus: is required"),
    (
        {"quotas": [{"tier": f"t{number}", "gpus": "1"} for number in range(65)]},
        "must have at most 64 items",
        "spec.quotas: has 65 items; 64 is the most",
    ),
    ({"quotas": {"gpus": 1}}, "spec.quotas", "spec.quotas: a map should be a list"),
    ({"maxTier": "GPU Training"}, "spec.maxTier", f'spec.maxTier: "GPU Training" should match {_TIER}'),
    ({"maxTier": 7}, "spec.maxTier", 'spec.maxTier: "7" should be text; write it in quotes'),
    (
        {"allowedTiers": ["gpu-batch", "gpu-batch"]},
        "spec.allowedTiers[1]: Duplicate value",
        'spec.allowedTiers[1]: "gpu-batch" is listed twice',
    ),
    (
        {"allowedTiers": [None]},
        "spec.allowedTiers[0]",
        "spec.allowedTiers[0]: null should be text; write it in quotes",
    ),
    ({"allowedTiers": []}, "spec.allowedTiers", "spec.allowedTiers: has 0 items; 1 is the least"),
    (
        {"onExceed": "Queue"},
        'Unsupported value: "Queue": supported values: "Deny", "Demote", "Warn", "Hold"',
        'spec.onExceed: "Queue" is not accepted; write one of Deny, Demote, Warn, Hold',
    ),
    (
        {"onExceed": "Hold", "holdOrder": "Fair"},
        'Unsupported value: "Fair": supported values: "Strict", "BestEffort"',
        'spec.holdOrder: "Fair" is not accepted; write one of Strict, BestEffort',
    ),
    (
        {"onExceed": "Hold", "reserveSeconds": -1},
        "spec.reserveSeconds in body should be greater than or equal to 0",
        'spec.reserveSeconds: "-1" should be 0 or more',
    ),
    (
        {"onExceed": "Hold", "reserveSeconds": "15m"},
        'spec.reserveSeconds: Invalid value: "string"',
        'spec.reserveSeconds: "15m" should be a whole number',
    ),
    (
        {"onExceed": "Demote", "quotas": [{"gpus": 8, "onExceed": "Hold"}]},
        "quotas: a row's onExceed Hold goes with Deny or Hold of the tenant; above its other rows pods would run",
        "spec: quotas: a row's onExceed Hold goes with Deny or Hold of the tenant; above its other rows pods would run",
    ),
    ({"holdOrder": "Strict"}, _NOT_QUEUED, f"spec: {_NOT_QUEUED}"),
    ({"onExceed": "Warn", "reserveSeconds": 0}, _NOT_QUEUED, f"spec: {_NOT_QUEUED}"),
    (
        {"onExceed": "Hold", "holdOrder": "BestEffort", "reserveSeconds": 60},
        "reserveSeconds: holdOrder BestEffort reserves nothing; leave one of them out",
        "spec: reserveSeconds: holdOrder BestEffort reserves nothing; leave one of them out",
    ),
    (
        {"onExceed": "Hold", "quotaAuthority": "Kueue"},
        "onExceed: Hold would let pods wait here that quotaAuthority lets wait in another system",
        (
            "spec: onExceed: Hold would let pods wait here that quotaAuthority lets wait in another system; "
            "leave one of them out"
        ),
    ),
    (
        {"quotaAuthority": "Slurm"},
        'supported values: "gpu-tiers", "Kueue", "KAI"',
        'spec.quotaAuthority: "Slurm" is not accepted; write one of gpu-tiers, Kueue, KAI',
    ),
    (
        {"backstop": True},
        'spec.backstop: Invalid value: "boolean"',
        'spec.backstop: "True" should be text; write it in quotes',
    ),
    (
        {"backstop": "ResourceQuota", "quotaAuthority": "Kueue"},
        "backstop: ResourceQuotas would refuse what quotaAuthority leaves to another system; leave one of them out",
        (
            "spec: backstop: ResourceQuotas would refuse what quotaAuthority leaves to another system; "
            "leave one of them out"
        ),
    ),
    (
        {"backstop": "ResourceQuota", "onExceed": "Warn"},
        "backstop: ResourceQuotas would refuse what onExceed Warn lets run; leave one of them out",
        "spec: backstop: ResourceQuotas would refuse what onExceed Warn lets run; leave one of them out",
    ),
    (
        {"backstop": "ResourceQuota", "onExceed": "Hold"},
        "backstop: ResourceQuotas would refuse what Hold lets wait; leave one of them out",
        "spec: backstop: ResourceQuotas would refuse what Hold lets wait; leave one of them out",
    ),
    *(
        ({"budgets": budgets, **more}, said, f"spec: {said}")
        for budgets, more, said in (
            ([_HELD], {"onExceed": "Demote"}, _HELD_WHERE_PODS_RUN),
            ([_HELD], {"onExceed": "Warn"}, _HELD_WHERE_PODS_RUN),
            ([_LOWERED], {"onExceed": "Hold"}, _LOWERED_AND_HELD),
            ([_LOWERED], {"quotas": [{"gpus": 1, "onExceed": "Hold"}]}, _LOWERED_AND_HELD),
            ([_LOWERED, _HELD], {}, _LOWERED_AND_HELD),
        )
    ),
    (
        {"backstop": "ResourceQuota", "budgets": [{"gpuHours": 1, "per": "Day", "onExhausted": "Hold"}]},
        "backstop: ResourceQuotas would refuse what Hold lets wait; leave one of them out",
        "spec: backstop: ResourceQuotas would refuse what Hold lets wait; leave one of them out",
    ),
    (
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In"}]}},
        "In and NotIn need values; Exists and DoesNotExist take none",
        ("spec.namespaceSelector.matchExpressions[0]: In and NotIn need values; Exists and DoesNotExist take none"),
    ),
    (
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Is", "values": ["a"]}]}},
        'Unsupported value: "Is"',
        (
            'spec.namespaceSelector.matchExpressions[0].operator: "Is" is not accepted; '
            "write one of In, NotIn, Exists, DoesNotExist"
        ),
    ),
    ({"namespaceSelector": None}, "spec.namespaceSelector", "spec.namespaceSelector: is required"),
    (
        {"namespaceSelector": {"matchLabels": {"team": 1}}},
        "spec.namespaceSelector.matchLabels.team",
        'spec.namespaceSelector.matchLabels.team: "1" should be text; write it in quotes',
    ),
    (
        {"maxTeir": "gpu-batch"},
        'unknown field "spec.maxTeir"',
        (
            "spec.maxTeir: there is no such field; write one of namespaceSelector, maxTier, allowedTiers, "
            "defaultTier, quotas, budgets, grants, onExceed, demoteTo, holdOrder, reserveSeconds, quotaAuthority, "
            "backstop"
        ),
    ),
    (
        {"quotas": [{"gpus": "1", "onExceed": "Queue"}]},
        'Unsupported value: "Queue": supported values: "Hold"',
        'spec.quotas[0].onExceed: "Queue" is not accepted; write Hold, or leave it out',
    ),
    (
        {"quotas": [{"gpus": "1", "flavor": "h100"}]},
        'unknown field "spec.quotas[0].flavor"',
        "spec.quotas[0].flavor: there is no such field; write one of tier, resourceFlavor, gpus, onExceed",
    ),
]
