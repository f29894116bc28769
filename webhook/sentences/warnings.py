"""The words of each warning, and what the docs say about those of WARNINGS.

These start with their id in brackets, so that whoever reads one can search for it, and have 120 characters at most: the
API server cuts long ones, and a terminal wraps them.
"""

from collections.abc import Mapping

import msgspec

LONGEST = 120


class WarningText(msgspec.Struct, frozen=True):
    """A warning: its id, its text with the places of values, and the paragraph of the docs that says what to do."""

    id: str
    text: str
    docs: str


WARNINGS = (
    WarningText(
        "evicts-nobody",
        "kube-scheduler evicts nobody for {name} (DRA): {tier} waits until GPUs are free",
        "The GPUs come by dynamic resource allocation: by a claim, or by a resource that a DeviceClass serves and no "
        "device plugin of a node has. kube-scheduler evicts nobody for them, up to Kubernetes 1.38, whatever the tier. "
        "The workload waits until GPUs are free, and a pod of a lower tier that waits too may get them first. "
        "`gpu-tiers why-pending` names who holds them. Where a device plugin has the resource, the scheduler evicts. "
        "[GPUs by DRA](concepts.md#gpus-by-dra) has the rest.",
    ),
    WarningText(
        "guess-held-back",
        "{clue} hints at {type}; if so, label it gpu-tiers.dev/tier: {tier}",
        "The clue hints at a type whose tier is higher than the one that the workload gets, and the policy's `raiseBy` "
        "does not let such a clue raise a tier: a higher tier may evict others. With `raiseBy: Shown`, the default, "
        "these clues are names and ports. If the hint is right, add the label. To let hints raise tiers for everybody, "
        "the platform team sets `raiseBy: Hinted`.",
    ),
    WarningText(
        "guess-at-top",
        "top tier by {basis}; if wrong, label it gpu-tiers.dev/tier",
        "The workload gets the highest tier, whose pods may evict all others, and nothing proves its type. Either only "
        "a guess tells it (what it runs or what it is called), or only the usual use of its launcher does, as of an "
        "MPIJob whose program says nothing. Where what runs confirms the usual use, there is no warning. Add the label "
        "with the tier that it should have. If the highest tier is right, the label with that ends this warning. With "
        "`raiseBy: Usual` no guess raises a tier, with `raiseBy: Proven` no usual use does.",
    ),
    WarningText(
        "type-unknown",
        "unknown type gets {tier}; label it gpu-tiers.dev/tier: {tiers}",
        "Neither the kind nor what runs in it tells what the workload is, so it gets the policy's default tier. In the "
        "presets that is the lowest: most other GPU pods may evict it. Add the label with the tier that it should "
        "have. A tenant or a namespace can have a default of its own; then this warning does not come.",
    ),
    WarningText(
        "gang-label",
        "{template} names {tier}: it holds for all pods of this {kind}",
        "The pods of a gang are useful only together, so they run in one tier. One pod template of the workload names "
        "a tier, by label or by `priorityClassName`, and another template with GPUs names none. The tier holds for "
        "both. If that is right, write the label on the workload itself, and this warning does not come. Two templates "
        "that name different tiers are refused.",
    ),
    WarningText(
        "many-containers",
        "only its first {most} containers tell its type; label it gpu-tiers.dev/tier to choose",
        "So that no pod holds up the others, what runs is looked for in the first containers of a pod, or of a gang, "
        "and in the first variables of each. GPUs are counted in all of them. Add the label with the tier that it "
        "should have.",
    ),
    WarningText(
        "unknown-key",
        "gpu-tiers knows no {key}; did you mean {likely}?",
        "A label or an annotation of the workload, or of a pod template, begins with `gpu-tiers.dev/`, or a domain "
        "like it (`gpu-tier.dev/`), and means nothing: it is misspelt, or a label stands among the annotations. All "
        "goes on as if it were not there. People write the label `gpu-tiers.dev/tier`, and the annotations "
        "`gpu-tiers.dev/checkpoint`, `gpu-tiers.dev/checkpoint-timeout` and those of [the hook's "
        "fields](checkpointing.md#kinds).",
    ),
    WarningText(
        "two-quotas",
        "TenantQuota {tenant} and Kueue both count this; let one: quotaAuthority: Kueue",
        "The workload waits in a queue of Kueue, and its tenant has quota rows here: both count its GPUs. If Kueue "
        "admits what the rows have no room for, the release is refused, with an event on the workload, and Kueue keeps "
        "its own quota for it while it tries again. Where Kueue's queues are to account for the tenant, the platform "
        "team sets `quotaAuthority: Kueue` in the TenantQuota; else leave the queue's label out.",
    ),
    WarningText(
        "pre-stop-grace",
        "container {container} has its own preStop, and {grace} s of grace, but {needed} s are needed",
        "gpu-tiers does not replace a container's own `preStop`, and does not raise the grace period for it. The "
        "handler runs within `terminationGracePeriodSeconds`: when that is over the program is killed, saved or not. "
        "Raise it to the time that the handler takes, plus the time to end.",
    ),
    WarningText(
        "shell-pid-1",
        "container {container}: a shell as first process does not pass SIGTERM on; exec the program",
        "`sh -c` without `exec` stays the container's first process. It neither ends at SIGTERM nor passes it on, so "
        "the program gets no signal and holds its GPUs until the grace period is over. Write `exec` before the last "
        "command, set a `trap`, or leave the shell out.",
    ),
    WarningText(
        "job-backoff",
        "preemptions count against {field} {limit}; let podFailurePolicy ignore DisruptionTarget",
        "A preempted pod of a Job counts as failed, and after `backoffLimit` failures the Job fails for good. With "
        "`backoffLimitPerIndex` its index does. A JobSet whose `failurePolicy` starts it again allows so many failures "
        "once more at each restart. The warning comes where fewer than 20 preemptions end the work. A "
        "`podFailurePolicy` with `action: Ignore` for the condition `DisruptionTarget` leaves preemptions out; it "
        "needs `restartPolicy: Never`. Then the program has to end with 143: a pod that saves and ends with 0 has "
        "*succeeded*, and training ends.",
    ),
    WarningText(
        "runtime-backoff",
        "preemptions count against the runtime's backoffLimit {limit}: let its pods restart Never",
        "The Jobs of a TrainJob are written in its runtime. Where that gives their pods no `restartPolicy`, JobSet "
        "chooses `OnFailure`, and such a Job can have no `podFailurePolicy`: each preempted pod counts as failed, and "
        "after `backoffLimit` failures the TrainJob fails for good. With `restartPolicy: Never` in the pod template "
        "gpu-tiers gives the Job [a policy](checkpointing.md#jobs) by which preemptions do not count.",
    ),
    WarningText(
        "job-exit-code",
        "{path} acts on exit code 143 before one on DisruptionTarget",
        "The rules of a `podFailurePolicy` are tried in order, and the first that matches decides. A program that "
        "SIGTERM ended has exit code 143. A rule that matches this code decides on preempted pods too: a "
        "preemption fails the Job or counts against its limit. Put a rule on `DisruptionTarget` first, with "
        "`action: Ignore` unless a preemption is to fail the Job.",
    ),
    WarningText(
        "restarts-counted",
        "a preemption takes one of maxRestarts {most}; RestartJobSetAndIgnoreMaxRestarts takes none",
        "A rule of the Job's `podFailurePolicy` fails the Job at the first preemption, and the JobSet's "
        "`failurePolicy` then restarts it. Each such restart counts against `maxRestarts`, which is 0 where "
        "nothing stands. Give the JobSet a rule with `action: RestartJobSetAndIgnoreMaxRestarts` and "
        "`onJobFailureReasons: [PodFailurePolicy]`: then preemptions never end it.",
    ),
    WarningText(
        "lost-node",
        "added podFailurePolicy: pods on a lost node are replaced once it is deleted or tainted out-of-service",
        "gpu-tiers adds a [podFailurePolicy](checkpointing.md#jobs) to the Job. Kubernetes allows one only with "
        "`podReplacementPolicy: Failed`: a pod is replaced once it has ended. Nothing reports the end of a pod on "
        "a lost node, so its replacement waits until the Node object is deleted or has the taint "
        "`node.kubernetes.io/out-of-service`. [What to do](checkpointing.md#a-job-and-a-lost-node). The warning "
        "comes once, with the workload that is applied, and only where gpu-tiers adds the policy.",
    ),
    WarningText(
        "replicas-never",
        "{replica} has restartPolicy {policy}: one preemption fails the {kind}; ExitCode tries 143 again",
        "With `Never` the training operator creates no failed pod again, so the first preemption ends the whole run. "
        "It takes that where nothing stands, but for a PyTorchJob and a PaddleJob; an XGBoostJob and an MPIJob fail "
        "with `OnFailure` too. "
        "With `ExitCode` it creates those again that end with 128 or more, as a program does that saved and ended with "
        "143. Errors of the program itself, such as 1, stay final.",
    ),
    WarningText(
        "grace-above-cap",
        "terminationGracePeriodSeconds {grace} is above the policy's {cap}; another pod may wait that long",
        "Another pod waits for the GPUs as long as this pod may take to end, and the cluster autoscaler cuts the "
        "grace period at 600 seconds unless it is told otherwise. A grace period that you wrote stays; "
        "`checkpoint.maxGracePeriodSeconds`, or what `maxGracePeriodSecondsByTier` has for the pod's tier, limits "
        "only what a hook adds.",
    ),
    WarningText(
        "no-controller",
        "restartPolicy Never and no controller: nothing creates this pod again after a preemption; use a Job",
        "A preempted pod is deleted. Only a controller (a Job, a PyTorchJob) creates another one, which goes on from "
        "the checkpoint. The warning comes only if the policy or the pod asks for a checkpoint hook: where nothing is "
        "saved, nothing could go on.",
    ),
    WarningText(
        "checkpoint-on-emptydir",
        "container {container}: {path} lies on the emptyDir {volume}, which dies with the pod",
        "An `emptyDir` is deleted with its pod, and so is the checkpoint that was just saved there. Save to a "
        "PersistentVolumeClaim or an object store. The warning comes only if an argument or a variable is named after "
        "a checkpoint, its path lies in an `emptyDir`, and no other container mounts that volume to carry the files "
        "away.",
    ),
    WarningText(
        "hook-ignored",
        "no {kind}: {reason}",
        "An annotation or the policy asks for a hook that the pod can't have; the warning says why. The pod runs, and "
        "ends as it would without gpu-tiers. The warning also comes for an annotation that has no hook to change, and "
        "for one that asks for more time than the pods of its tier have: the hook then gets what is left.",
    ),
    WarningText(
        "hook-overrides-policy",
        "the annotation's hook ({kind}) replaces the policy's hook ({policy})",
        "An annotation overrides the policy, because a team knows its own programs best. The warning comes once, when "
        "the workload is applied, because the annotation may be older than the policy.",
    ),
    WarningText(
        "python-path",
        "the listener's PYTHONPATH hides that of an image; name it in {key}",
        "Python finds [the listener](checkpointing.md) by `PYTHONPATH`. Where a container sets that itself, ours goes "
        "before it. What the image sets (`ENV PYTHONPATH`) stands in no manifest, and a pod's variable replaces it, so "
        "the program may miss modules. Name the image's value in the annotation, or in the policy's `pythonPath`; "
        "`none` says that the image has no such value, and ends the warning.",
    ),
    WarningText(
        "hook-port",
        "no container declares port {port}, which the http hook asks; make sure that something listens",
        "A hook may ask a port that is not declared, because a program can listen there too. If nothing listens, the "
        "request fails, the kubelet reports `FailedPreStopHook`, and the pod ends without a save. Declare the port "
        "under `ports`, and the warning goes away.",
    ),
    WarningText(
        "no-shell",
        "image {image} seems to have no shell, which a {kind} hook needs; use http, sleep or sigterm",
        "The hooks `file` and `signal` run `/bin/sh`, `touch`, `rm` and `sleep` of the image. Without them the "
        "kubelet reports `FailedPreStopHook` and the pod ends without a save. This is a guess from the image's name "
        "(distroless, static, scratch).",
    ),
    WarningText(
        "runtime-unread",
        "{runtime} can't be read: its commands and GPUs are not judged here",
        "A TrainJob's pods are made of its runtime, and of what the TrainJob overrides in it. gpu-tiers reads the "
        "runtime, to say of the TrainJob what it will say of its pods. Where the runtime does not exist or can't be "
        "read, the TrainJob and its pods are judged by the TrainJob's own fields. Check `spec.runtimeRef`. Give the "
        "runtime's file to `gpu-tiers review` too.",
    ),
    WarningText(
        "sidecar-ends-first",
        "container {container} ends at once, while {main} still saves; make it a native sidecar",
        "All containers of a pod are told to end at the same time. A proxy or an uploader that the save needs may be "
        "gone before the save is done. An init container with `restartPolicy: Always` ends after the others. The "
        "warning comes for containers without a `preStop` whose name or image says proxy, upload, sync or the like.",
    ),
    WarningText(
        "gang-in-parts",
        "disruptionMode lets a preemption take one pod of this gang; the rest can't go on without it",
        "It stands on a PodGroup that trains and whose `disruptionMode` says `single` (1.36: `Pod`), or whose Workload "
        "or Job says so. The scheduler then evicts as few of its pods as it needs. If the gang can't go on without "
        "these, leave `disruptionMode` out: gpu-tiers writes `all` (1.36: `PodGroup`), and all of them go, and save, "
        "together.",
    ),
    WarningText(
        "gang-broken-by-pods",
        "Kubernetes 1.36: a pod outside any PodGroup evicts single pods of this gang, not all of it",
        "On 1.36 the scheduler heeds a gang's `disruptionMode` only if what preempts it is itself in a PodGroup. "
        "Otherwise it evicts as few pods as it needs, and the rest hold their GPUs and can't go on. From 1.37 on all "
        "of them go. Until then let what may preempt training run in PodGroups too, or let the gang fail as a whole: "
        "a JobSet with a `failurePolicy`, a Job with a `podFailurePolicy`.",
    ),
    WarningText(
        "gpu-not-counted",
        "{name}: {counts}, as the policy does not list it; ask the platform team",
        "It looks like GPUs, and [the policy](policy.md#what-counts-as-a-gpu) does not list it: time-slices that have "
        "a name of their own, an accelerator under a new name, the `gpu-fraction` of a shared GPU. By default one of "
        "such a resource counts as a whole GPU, and a MIG slice as its share. A name of NVIDIA's or AMD's that may be "
        "a network card's adds nothing beside as many GPUs. No quota counts an annotation that is not "
        "listed, nor any such resource under `uncounted: Warn`: a pod that asks for nothing else gets no tier, so "
        "each tier that preempts can evict it. The platform team can list it under `resources`, with the weight that "
        'it has, or `"0"` if it is no GPU.',
    ),
    WarningText(
        "held-surge",
        "its rollouts wait beside their old pods; set {field}: 0",
        "The tenant [holds](tenants.md#workloads-while-they-wait) what is over its quota. A rollout with a surge "
        "makes new pods before it takes the old ones away: the old ones keep their GPUs, and the new ones wait for "
        "others until somebody else's have ended. Nothing is lost, but a rollout in a full quota does not go on by "
        "itself. With a surge of 0, and `maxUnavailable` of 1 or more, each new pod gets the place of the old one "
        "that went for it.",
    ),
    WarningText(
        "held-counted",
        "ResourceQuota {quota} counts pods that wait for quota too: it may refuse what could wait",
        "The tenant [holds](tenants.md#workloads-while-they-wait) what is over its quota, and the ResourceQuota of the "
        "namespace counts pods from their create, also those behind a gate. Where it is full, a pod is refused that "
        "would have had a place in the line. Leave GPUs to the TenantQuota, or let the ResourceQuota have room for all "
        "that may wait.",
    ),
    WarningText(
        "held-deadline",
        "{field} {seconds} runs on while its pods wait for quota; allow more, or suspend it",
        "The tenant [holds](tenants.md#workloads-while-they-wait) what is over its quota, and pods that wait count as "
        "active: the deadline runs, and ends a workload that has never run. Leave it out, or let it allow for the "
        "time in the line too. While the workload is suspended it does not run; it begins when somebody resumes it, "
        "also if its pods wait then. A deadline in the pod template (`template.spec.activeDeadlineSeconds`) begins "
        "when a pod has a node. A job of the training operator (PyTorchJob and the like) stays in the line past its "
        "deadline, and fails when its turn comes. In a JobSet each deadline takes one of `maxRestarts`. A RayJob that "
        "has failed leaves its pods gated until it is deleted; with `shutdownAfterJobFinishes: true` they go at once.",
    ),
    WarningText(
        "held-schedule",
        "concurrencyPolicy {policy} begins the next run while one waits for quota; Forbid does not",
        "The tenant [holds](tenants.md#workloads-while-they-wait) what is over its quota, and a Job whose pods wait "
        "is active. With `Allow`, the default, each run adds another Job to the line, and all of them run when there "
        "is room. With `Replace` each run deletes the Job that waits, and the new one begins at the end of the line. "
        "With `Forbid` a run is skipped while one waits.",
    ),
    WarningText(
        "held-in-order",
        "OrderedReady: each pod waits for quota only after the one before; Parallel lets all wait now",
        "The tenant [holds](tenants.md#workloads-while-they-wait) what is over its quota. A StatefulSet whose "
        "`podManagementPolicy` is `OrderedReady`, the default, makes each pod when the one before is ready. So each "
        "begins at the end of the line, while those before it hold their GPUs. With `Parallel` all stand in the line "
        "from the beginning. Either way they go one by one; where some are of no use without the others, take a kind "
        "that is [booked as a whole](tenants.md#gangs), such as a LeaderWorkerSet.",
    ),
    WarningText(
        "node-selector",
        "nodeSelector {key}: {own} contradicts {value} of its namespace; its pods are refused",
        "The namespace has the annotation `scheduler.alpha.kubernetes.io/node-selector` or "
        "`openshift.io/node-selector`. The admission plugin PodNodeSelector, or that of OpenShift, adds these node "
        "labels to each pod of the namespace and refuses a pod that asks for another value of the same label. The "
        "workload itself is admitted, so the refusals show only in its events. Remove the label from the template's "
        "`nodeSelector`, or use a namespace whose nodes have it. If the API server runs without that plugin, nothing "
        "is refused.",
    ),
    WarningText(
        "held-on-nodes",
        "a pod that waits for quota counts as unavailable: a DaemonSet's rollout stops at it",
        "The tenant [holds](tenants.md#workloads-while-they-wait) what is over its quota. A DaemonSet makes a pod for "
        "each node, and each waits for its turn, also on a node that was just added. One that waits counts as "
        "unavailable, so that a rollout with `maxUnavailable: 1` goes no further. Give the tenant of a DaemonSet a "
        "quota for all its nodes, or put it into a namespace of no tenant that holds.",
    ),
    WarningText(
        "held-to-zero",
        "Knative gives a new revision up if its pods wait longer than progress-deadline {deadline}; allow more",
        "The tenant [holds](tenants.md#workloads-while-they-wait) what is over its quota. Knative takes pods that "
        "wait behind a gate for pods that can't start (knative/serving#15308). 30 s after the time in the "
        "template's annotation `serving.knative.dev/progress-deadline` it scales the revision to zero, also one with "
        "`min-scale`. One that has never run has failed then, and stays at zero when there is room. Set that "
        "annotation to the time that the service may wait; the platform team sets the default, 600s, as "
        "`progress-deadline` in Knative's ConfigMap `config-deployment`. What `onExceed: Deny` refuses is given up as "
        "well. From zero, `kubectl scale` of its Deployment to 1 stands in the line again, and so does a new revision, "
        "for example one with another annotation.",
    ),
)

BY_ID = {each.id: each for each in WARNINGS}

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
