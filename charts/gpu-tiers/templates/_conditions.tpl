{{/*
CEL that decides which requests reach the webhook. Under failurePolicy Fail an expression with an error refuses, so
absent fields go through `?` and orValue. Each is for one shape of object only.
*/}}

{{/*
True for a pod template that the policy may apply to. Takes {root, pod: the CEL path to it}. Limits are asked too: a
template arrives without the defaults of a pod.
*/}}
{{- define "gpu-tiers.isGpuTemplate" -}}
{{- $pod := .pod -}}
({{ $pod }}.spec.?containers.orValue([]) + {{ $pod }}.spec.?initContainers.orValue([])).exists(c,
[c.?resources.?requests.orValue({}), c.?resources.?limits.orValue({})].exists(asked, asked.exists(n,
{{ include "gpu-tiers.mayBeGpus" .root }} && quantity(asked[n]).isGreaterThan(quantity('0'))))) ||
size({{ $pod }}.spec.?resourceClaims.orValue([])) > 0 ||
has({{ $pod }}.spec.schedulingGroup) ||
{{ $pod }}.spec.?priorityClassName.orValue('') in {{ include "gpu-tiers.classNames" .root }} ||
{{ include "gpu-tiers.markingLabels" .root }}.exists(l, l in {{ $pod }}.?metadata.?labels.orValue({})) ||
['gpu-fraction', 'gpu-memory'].exists(a, a in {{ $pod }}.?metadata.?annotations.orValue({}))
{{- end -}}

{{/*
True for the name `n` of a resource that may be a GPU's: of any that a device plugin or a DeviceClass offers, unless the
policy says that it is none. Only the webhook knows the names that DeviceClasses have in the cluster.
*/}}
{{- define "gpu-tiers.mayBeGpus" -}}
n.contains('/') && !(n in {{ include "gpu-tiers.namesWithoutGpus" . }})
{{- end -}}

{{/*
True for one that is called as GPUs are: listed by the policy, a DeviceClass by its name, or as webhook/policy/values/
accelerators.yaml has them. Only pods that ask for such a resource wait for a webhook that is away.
*/}}
{{- define "gpu-tiers.areGpus" -}}
{{ include "gpu-tiers.mayBeGpus" . }} && (n in {{ include "gpu-tiers.namesOfGpus" . }} ||
n.startsWith('deviceclass.resource.kubernetes.io/') ||
{{- with (include "gpu-tiers.known" . | fromJson).gpuNames }}
(n.split('/')[0] in {{ toJson .domains }} || n.matches('{{ .words }}')) && !n.matches('{{ .others }}'))
{{- end }}
{{- end -}}

{{/* True for a pod that requests a resource of such a name. Takes {root, names: a definition above}. */}}
{{- define "gpu-tiers.requests" -}}
{{- $asks := printf "c.?resources.?requests.orValue({}).exists(n, %s && quantity(c.resources.requests[n]).isGreaterThan(quantity('0')))" (include .names .root) -}}
object.spec.containers.exists(c, {{ $asks }}) ||
(has(object.spec.initContainers) && object.spec.initContainers.exists(c, {{ $asks }}))
{{- end -}}

{{/*
True for a pod that the policy applies to. Every pod of the cluster pays for this in both configurations, so there is
one condition (all of them are always evaluated), what the object has is looked up in literal lists and not the other
way round, and no list is built. Requests alone are asked: the API server fills them from limits before any webhook.
The last check, for mirror pods, is one that few pods reach. Takes {root, names: as above}.
*/}}
{{- define "gpu-tiers.isPodWith" -}}
{{- $requests := include "gpu-tiers.requests" . -}}
{{- with .root -}}
({{ $requests }} ||
object.metadata.?labels.orValue({}).exists(l, l in {{ include "gpu-tiers.markingLabels" . }}) ||
(has(object.spec.priorityClassName) && object.spec.priorityClassName in {{ include "gpu-tiers.classNames" . }}) ||
{{- range include "gpu-tiers.shareAnnotations" . | fromJsonArray }}
(has(object.metadata.annotations) && '{{ . }}' in object.metadata.annotations) ||
{{- end }}
(has(object.spec.resourceClaims) && size(object.spec.resourceClaims) > 0) ||
(has(object.spec.schedulingGates) && object.spec.schedulingGates.exists(g, g.name == 'gpu-tiers.dev/quota')) ||
has(object.spec.schedulingGroup)) &&
!({{ include "gpu-tiers.isMirrorPod" . }})
{{- end -}}
{{- end -}}

{{/* True for a pod that the policy may apply to, whatever the cluster calls its GPUs. */}}
{{- define "gpu-tiers.isGpuPod" -}}
{{ include "gpu-tiers.isPodWith" (dict "root" . "names" "gpu-tiers.mayBeGpus") }}
{{- end -}}

{{/*
True for a pod on which the conditions below may cost more than the API server allows them, a thousand names in all. An
error counts as the failurePolicy says, so one that may be GPUs' is asked about where that is to refuse.
*/}}
{{- define "gpu-tiers.isLarge" -}}
size(object.spec.containers) + size(object.spec.?initContainers.orValue([])) > 32 ||
size(object.metadata.?labels.orValue({})) > 500 ||
object.spec.containers.exists(c, size(c.?resources.?requests.orValue({})) > 10) ||
object.spec.?initContainers.orValue([]).exists(c, size(c.?resources.?requests.orValue({})) > 10)
{{- end -}}

{{/* True for a kubelet's mirror of a static pod, which runs even if it is refused. Anybody may write the annotation. */}}
{{- define "gpu-tiers.isMirrorPod" -}}
has(object.metadata.annotations) && 'kubernetes.io/config.mirror' in object.metadata.annotations &&
'system:nodes' in request.userInfo.?groups.orValue([])
{{- end -}}

{{/* matchConditions of pods on CREATE. */}}
{{- define "gpu-tiers.podConditions" -}}
- name: concerns-gpus
  expression: >-
    {{- include "gpu-tiers.isGpuPod" . | nindent 4 }}
{{- end -}}

{{/* matchConditions of pods on CREATE that are refused while the webhook is away. */}}
{{- define "gpu-tiers.gpuPodConditions" -}}
- name: concerns-gpus
  expression: >-
    (({{- include "gpu-tiers.requests" (dict "root" . "names" "gpu-tiers.mayBeGpus") | nindent 4 }}) &&
    ({{- include "gpu-tiers.isLarge" . | nindent 4 }})) ||
    {{- include "gpu-tiers.isPodWith" (dict "root" . "names" "gpu-tiers.areGpus") | nindent 4 }}
{{- end -}}

{{/* matchConditions of the other pods on CREATE: those with a device that a DeviceClass may call so. */}}
{{- define "gpu-tiers.devicePodConditions" -}}
- name: may-concern-gpus
  expression: >-
    !({{- include "gpu-tiers.isLarge" . | nindent 4 }}) &&
    ({{- include "gpu-tiers.requests" (dict "root" . "names" "gpu-tiers.mayBeGpus") | nindent 4 }}) &&
    !({{- include "gpu-tiers.isPodWith" (dict "root" . "names" "gpu-tiers.areGpus") | nindent 4 }})
{{- end -}}

{{/*
matchConditions of pods on UPDATE: true only for a changed label of tier or queue, a changed mark of what its claims
asked for, of its gang, or of what another scheduler ranks it by, a changed part of a GPU where the policy counts any, or nodes chosen
behind a scheduling gate where the policy has flavors, so that a finalizer can always be removed. What a pod in deletion
is charged for stays what it was.
*/}}
{{- define "gpu-tiers.podUpdateConditions" -}}
- name: tier-or-part-of-a-gpu-changed
  expression: >-
    ['gpu-tiers.dev/claimed', 'gpu-tiers.dev/gang'].exists(a,
    object.metadata.?annotations[?a].orValue('') != oldObject.metadata.?annotations[?a].orValue('')) ||
    {{- if include "gpu-tiers.shareAnnotations" . | fromJsonArray }}
    ['gpu-fraction', 'gpu-memory', 'gpu-fraction-num-devices'].exists(a,
    object.metadata.?annotations[?a].orValue('') != oldObject.metadata.?annotations[?a].orValue('')) ||
    {{- end }}
    (!has(object.metadata.deletionTimestamp) && (
    object.metadata.?labels[?'gpu-tiers.dev/tier'].orValue('') !=
    oldObject.metadata.?labels[?'gpu-tiers.dev/tier'].orValue('') ||
    (object.spec.?priorityClassName.orValue('') in {{ include "gpu-tiers.classNames" . }} && (
    object.metadata.?labels[?'priorityClassName'].orValue('') !=
    oldObject.metadata.?labels[?'priorityClassName'].orValue('') ||
    ['scheduling.k8s.io/group-name', 'pod-group-name'].exists(a,
    object.metadata.?annotations[?a].orValue('') != oldObject.metadata.?annotations[?a].orValue(''))))
    {{- if include "gpu-tiers.kueue" . | fromJson }} ||
    object.metadata.?labels[?'kueue.x-k8s.io/priority-class'].orValue('') !=
    oldObject.metadata.?labels[?'kueue.x-k8s.io/priority-class'].orValue('')
    {{- end }}
    {{- if include "gpu-tiers.flavors" . | fromJsonArray }} ||
    ({{- include "gpu-tiers.choosesNodes" . | nindent 4 }} &&
    ({{- include "gpu-tiers.isGpuPod" . | nindent 4 }}))
    {{- end }}))
{{- end -}}

{{/*
True where the nodes change on which a pod may run: behind a scheduling gate that is none, and it may get a node
selector, as it does of Kueue when its gate is lifted. Pods without a gate, nearly all, end at the first comparison.
*/}}
{{- define "gpu-tiers.choosesNodes" -}}
size(oldObject.spec.?schedulingGates.orValue([])) > 0 &&
(size(object.spec.?schedulingGates.orValue([])) == 0 ||
object.spec.?nodeSelector.orValue({}) != oldObject.spec.?nodeSelector.orValue({}) ||
object.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.orValue({}) !=
oldObject.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.orValue({}))
{{- end -}}

{{/*
matchConditions of ResourceClaims: true for a new one, and where it becomes a pod's, by its controller or the annotation
that a claim of a template has. Their spec is immutable, and their status is the scheduler's.
*/}}
{{- define "gpu-tiers.claimConditions" -}}
- name: new-or-another-pods
  expression: >-
    request.operation == 'CREATE' ||
    (object.metadata.?ownerReferences.orValue([]) != oldObject.metadata.?ownerReferences.orValue([])) ||
    object.metadata.?annotations[?'resource.kubernetes.io/pod-claim-name'].orValue('') !=
    oldObject.metadata.?annotations[?'resource.kubernetes.io/pod-claim-name'].orValue('')
- name: not-being-deleted
  expression: "!has(object.metadata.deletionTimestamp)"
{{- end -}}

{{/* matchConditions of other schedulers' groups: true for a class, or a tier's label beside it, that is new. */}}
{{- define "gpu-tiers.rankConditions" -}}
- name: class-is-new
  expression: >-
    object.?spec.?priorityClassName.orValue('') != '' && (request.operation == 'CREATE' ||
    object.spec.priorityClassName != oldObject.?spec.?priorityClassName.orValue('') ||
    object.metadata.?labels[?'gpu-tiers.dev/tier'].orValue('') !=
    oldObject.metadata.?labels[?'gpu-tiers.dev/tier'].orValue(''))
- name: not-being-deleted
  expression: "!has(object.metadata.deletionTimestamp)"
{{- end -}}

{{/* matchConditions of workloads: true for what a person applied, not for what a controller created or updated. */}}
{{- define "gpu-tiers.nobodyControlsIt" -}}
- name: nobody-controls-it
  expression: "!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))"
{{- end -}}

{{/*
A workload of a controller is reviewed only if it is a gang and its controller is none: the Job of a CronJob, the
PyTorchJob of a Katib trial. An update is reviewed for its spec, its labels, and new values of our annotations, because a
wrong one refuses every later pod. Removing one breaks nothing. Controllers write other annotations all the time.
With tierAccess a controller's pods pass by its workload, so each is reviewed, and each change of what names its tier.
The API server takes 6 seconds to look through 50,000 annotations (its time grows with their square), so of one with more
than 500 each change is reviewed.
Takes {root, gangs: the plurals of the gangs in the entry}.
*/}}
{{- define "gpu-tiers.workloadConditions" -}}
{{- $rights := include "gpu-tiers.asksForRights" .root | eq "true" -}}
{{- if $rights -}}
{{- else if .gangs -}}
- name: nobody-controls-it-or-it-is-a-gang-by-itself
  expression: >-
    !object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) &&
    (!(request.resource.resource in {{ toJson .gangs }}) || o.kind in {{ include "gpu-tiers.gangKinds" .root }}))
{{- else -}}
{{ include "gpu-tiers.nobodyControlsIt" .root }}
{{- end }}
- name: not-being-deleted
  expression: "!has(object.metadata.deletionTimestamp)"
- name: somebody-changed-it
  expression: >-
    request.operation == 'CREATE' ||
    {{- if $rights }}
    object.metadata.?ownerReferences.orValue([]) != oldObject.metadata.?ownerReferences.orValue([]) ||
    object.metadata.?annotations[?'gpu-tiers.dev/template-class'] !=
    oldObject.metadata.?annotations[?'gpu-tiers.dev/template-class'] ||
    {{- end }}
    object.?spec.orValue({}) != oldObject.?spec.orValue({}) ||
    object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({}) ||
    (object.metadata.?annotations.orValue({}) != oldObject.metadata.?annotations.orValue({}) &&
    (size(object.metadata.?annotations.orValue({})) > 500 ||
    object.metadata.?annotations.orValue({}).exists(a, a.startsWith('gpu-tiers.dev/') &&
    oldObject.metadata.?annotations[?a] != optional.of(object.metadata.annotations[a]))))
{{- end -}}

{{/*
True for a workload that is written to at its creation: one that Kueue queues, whoever made it, and with `templates:
Mutate` what a person applied. Kueue's own webhook comes before ours and names the default queue. Every Volcano Job, for
its rank. A Job that may get a podFailurePolicy. Empty where none is. Takes {root, group}.
*/}}
{{- define "gpu-tiers.writesWorkloads" -}}
{{- $nobody := "!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))" -}}
{{- $kueue := include "gpu-tiers.kueue" .root | fromJson -}}
{{- $terms := list -}}
{{- if or $kueue.manageJobsWithoutQueueName (eq .group "batch.volcano.sh") -}}
{{- $terms = list "true" -}}
{{- else -}}
{{- if $kueue -}}
{{- $terms = append $terms "'kueue.x-k8s.io/queue-name' in object.metadata.?labels.orValue({})" -}}
{{- end -}}
{{- if eq "Mutate" (include "gpu-tiers.templates" .root) -}}
{{- $terms = append $terms $nobody -}}
{{- end -}}
{{- if and (eq .group "batch") (ne "Off" (include "gpu-tiers.templates" .root)) (ne "Leave" (include "gpu-tiers.podFailurePolicy" .root)) -}}
{{- $terms = append $terms "request.resource.resource == 'jobs' && object.spec.template.spec.?restartPolicy.orValue('') == 'Never' && !has(object.spec.podFailurePolicy)" -}}
{{- end -}}
{{- end -}}
{{- join " || " $terms -}}
{{- end -}}
