"""The words of each warning, by its id."""

from collections.abc import Mapping

LONGEST = 120

WARNINGS: Mapping[str, str] = {
    "evicts-nobody": "kube-scheduler evicts nobody for {name} (DRA): {tier} waits until GPUs are free",
    "guess-held-back": "{clue} hints at {type}; if so, label it gpu-tiers.dev/tier: {tier}",
    "guess-at-top": "top tier by {basis}; if wrong, label it gpu-tiers.dev/tier",
    "type-unknown": "unknown type gets {tier}; label it gpu-tiers.dev/tier: {tiers}",
    "gang-label": "{template} names {tier}: it holds for all pods of this {kind}",
    "many-containers": "only its first {most} containers tell its type; label it gpu-tiers.dev/tier to choose",
    "unknown-key": "gpu-tiers knows no {key}; did you mean {likely}?",
    "two-quotas": "TenantQuota {tenant} and Kueue both count this; let one: quotaAuthority: Kueue",
    "pre-stop-grace": "container {container} has its own preStop, and {grace} s of grace, but {needed} s are needed",
    "shell-pid-1": "container {container}: a shell as first process does not pass SIGTERM on; exec the program",
    "job-backoff": "preemptions count against {field} {limit}; let podFailurePolicy ignore DisruptionTarget",
    "runtime-backoff": "preemptions count against the runtime's backoffLimit {limit}: let its pods restart Never",
    "job-exit-code": "{path} acts on exit code 143 before one on DisruptionTarget",
    "restarts-counted": "a preemption takes one of maxRestarts {most}; RestartJobSetAndIgnoreMaxRestarts takes none",
    "lost-node": "added podFailurePolicy: pods on a lost node are replaced once it is deleted or tainted "
    "out-of-service",
    "replicas-never": "{replica} has restartPolicy {policy}: one preemption fails the {kind}; ExitCode tries 143 again",
    "grace-above-cap": "terminationGracePeriodSeconds {grace} is above the policy's {cap}; another pod may wait that "
    "long",
    "no-controller": "restartPolicy Never and no controller: nothing creates this pod again after a preemption; use a "
    "Job",
    "checkpoint-on-emptydir": "container {container}: {path} lies on the emptyDir {volume}, which dies with the pod",
    "hook-ignored": "no {kind}: {reason}",
    "hook-overrides-policy": "the annotation's hook ({kind}) replaces the policy's hook ({policy})",
    "python-path": "the listener's PYTHONPATH hides that of an image; name it in {key}",
    "hook-port": "no container declares port {port}, which the http hook asks; make sure that something listens",
    "no-shell": "image {image} seems to have no shell, which a {kind} hook needs; use http, sleep or sigterm",
    "runtime-unread": "{runtime} can't be read: its commands and GPUs are not judged here",
    "sidecar-ends-first": "container {container} ends at once, while {main} still saves; make it a native sidecar",
    "gang-in-parts": "disruptionMode lets a preemption take one pod of this gang; the rest can't go on without it",
    "gang-broken-by-pods": "Kubernetes 1.36: a pod outside any PodGroup evicts single pods of this gang, not all of it",
    "gpu-not-counted": "{name}: {counts}, as the policy does not list it; ask the platform team",
    "held-surge": "its rollouts wait beside their old pods; set {field}: 0",
    "held-counted": "ResourceQuota {quota} counts pods that wait for quota too: it may refuse what could wait",
    "held-deadline": "{field} {seconds} runs on while its pods wait for quota; allow more, or suspend it",
    "held-schedule": "concurrencyPolicy {policy} begins the next run while one waits for quota; Forbid does not",
    "held-in-order": "OrderedReady: each pod waits for quota only after the one before; Parallel lets all wait now",
    "node-selector": "nodeSelector {key}: {own} contradicts {value} of its namespace; its pods are refused",
    "held-on-nodes": "a pod that waits for quota counts as unavailable: a DaemonSet's rollout stops at it",
    "held-to-zero": "Knative gives a new revision up if its pods wait longer than progress-deadline {deadline}; allow "
    "more",
}
"""The warnings about a workload. They start with their id in brackets, so that whoever reads one can search for it:
docs/warnings.md explains each by that id. They have at most LONGEST characters, because the API server cuts long ones
and a terminal wraps them."""

OF_SETTING_UP: Mapping[str, str] = {
    "unknown-tier": "{sentence}",
    "unknown-flavor": "{sentence}",
    "above-ceiling": "{field}: {tier} is above spec.maxTier, {max_tier}; no pod may have it",
    "demotes-nowhere": "spec.onExceed: Demote, but no row is of a tier with an allowed one below it, so what is over "
    "the quota is refused; allow a lower tier, or write Deny",
    "demotes-not-there": "{field}: {tier} is below the tier of no row, so nothing is demoted to it; write a lower tier",
    "holds-nothing": "spec.onExceed: Hold, but spec.quotas has no row, so no pod ever waits; write a row "
    "with gpus, the GPUs that the tenant may use",
    "not-rendered": "{field}: a ResourceQuota can't count by resourceFlavor; the backstop lacks this row, and "
    "gpu-tiers alone holds it",
    "selects-nothing": "spec.namespaceSelector of TenantQuota {tenant} selects no namespace that exists now; compare "
    "it with kubectl get namespaces --show-labels",
    "overlap": "TenantQuota {other} selects {namespaces} too; {older} applies there. Make the selectors exclude each "
    "other",
    "below-use": "{field}: {hard} is below the {used} in use ({row}); nothing is evicted, and new pods are over the "
    "quota",
    "unknown-mode": 'label gpu-tiers.dev/mode: "{value:shown}" is no mode, so that of the installation holds; did you '
    "mean {likely}?",
    "unknown-default-tier": 'label gpu-tiers.dev/default-tier: "{value:shown}" is no tier, and Enforce refuses pods '
    "that would get it; did you mean {likely}?",
    "unknown-choice": 'label gpu-tiers.dev/untiered: "{value:shown}" is ignored; did you mean {likely}?',
}
"""What whoever writes a TenantQuota or labels a namespace is told, with the id in brackets too."""

WITHOUT_ID: Mapping[str, str] = {
    "as-told": "{text}",
    "would-be-refused": "would be refused: {refusal}",
    "let-in": "{refusal}",
    "let-in-over-quota": "{refusal} It is let in, because the tenant's onExceed is Warn.",
    "not-in-force": "{refusal}; this quota is not in force",
    "no-room-now": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; {what} asks for {gpus} in all, so "
    "{start} of its pods can start now",
    "no-room-for-more": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; {what} asks for {gpus} more, so "
    "{start} of its pods can start now",
    "its-pods-over": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; {what} asks for {gpus} in all, so "
    "its pods use more than the quota (onExceed: Warn)",
    "more-pods-over": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; {what} asks for {gpus} more, so "
    "its pods use more than the quota (onExceed: Warn)",
    "its-pods-wait": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; {what} asks for {gpus} in all, so "
    "its pods wait for their turn (onExceed: Hold)",
    "more-pods-wait": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; {what} asks for {gpus} more, so "
    "those pods wait for their turn (onExceed: Hold)",
    "no-room-for-a-run": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; each run of {what} asks for "
    "{gpus} in all. If that has not changed when a run begins, its pods are refused until there is room",
    "a-run-over": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; each run of {what} asks for {gpus} in "
    "all. If that has not changed when a run begins, its pods use more than the quota (onExceed: Warn)",
    "a-run-waits": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; each run of {what} asks for {gpus} "
    "in all. If that has not changed when a run begins, its pods wait for their turn (onExceed: Hold)",
    "pod-waits": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; this pod asks for {gpus}, so it waits "
    "for its turn (onExceed: Hold)",
    "pod-demoted": "tenant {tenant} has no room for it in {chosen}: this pod runs as {tier}{evicted}",
    "gang-demoted": "tenant {tenant} has no room for it in {chosen}: all pods of this {kind} run as {tier}{evicted}",
    "new-pods-demoted": "tenant {tenant} has no room for it in {chosen}: new pods of this {kind} run as {tier}"
    "{evicted}; those that run keep theirs",
    "some-demoted": "tenant {tenant}: {row} is at {used} of {hard:gpus}; {what} asks for {gpus} in all: pods that have "
    "no room there run as {tier}{evicted}",
    "more-demoted": "tenant {tenant}: {row} is at {used} of {hard:gpus}; {what} asks for {gpus} more: pods that have "
    "no room there run as {tier}{evicted}",
    "tier-lowered": "tier {lowered}",
    "namespace-without-tenant": "namespace {namespace} belongs to no tenant: no TenantQuota's namespaceSelector "
    "selects it",
    "class-kept": "priorityClassName {name:shown} is no tier's class and is kept; this pod gets no tier",
    "class-for-adoption": "priorityClassName {name} is for adoption, which is off: replaced by {tier}",
    "class-replaced": "priorityClassName {name} is replaced by {tier} ({reason})",
    "group-without-priority": "this cluster keeps no class on a PodGroup: its pods are evicted one by one, whatever "
    "disruptionMode says",
    "queue-ranks-as": "Kueue still ranks it as {there}, its pods now get {due}; label it {label}: {due}",
    "queue-sees-no-tier": "Kueue can't see its tier; label it {label}: {due}",
    "written-twice": '"{key}" is written twice, again in line {line}; kubectl takes the last',
    "claim-unread": "{problem}, so GPUs that it may ask for are not counted; the pods are refused until it can be read",
}
