{{/*
CEL that decides which requests reach the webhook. Under failurePolicy Fail an expression with an error refuses, so
absent fields go through `?` and orValue. Each is for one shape of object only.
*/}}

{{/*
True for a pod template that the policy applies to, or that asks for GPUs which the policy does not count: its user is
warned. Takes {root, pod: the CEL path to it}. Limits are asked too: a template arrives without the defaults of a pod.
*/}}
{{- define "gpu-tiers.isGpuTemplate" -}}
{{- $pod := .pod -}}
({{ $pod }}.spec.?containers.orValue([]) + {{ $pod }}.spec.?initContainers.orValue([])).exists(c,
[c.?resources.?requests.orValue({}), c.?resources.?limits.orValue({})].exists(asked, asked.exists(n,
(n in {{ include "gpu-tiers.resourceNames" .root }} || n.matches({{ include "gpu-tiers.gpuLike" . }})) &&
quantity(asked[n]).isGreaterThan(quantity('0'))))) ||
size({{ $pod }}.spec.?resourceClaims.orValue([])) > 0 ||
has({{ $pod }}.spec.schedulingGroup) ||
{{ $pod }}.spec.?priorityClassName.orValue('') in {{ include "gpu-tiers.classNames" .root }} ||
{{ $pod }}.?metadata.?labels.orValue({}).exists(l, l in {{ include "gpu-tiers.markingLabels" .root }}) ||
{{ $pod }}.?metadata.?annotations.orValue({}).exists(a, a in ['gpu-fraction', 'gpu-memory'])
{{- end -}}

{{/* What resources are called that GPUs have: GPU_LIKE of webhook/policy/quota/not_counted.py. */}}
{{- define "gpu-tiers.gpuLike" -}}
'^(nvidia[.]com|amd[.]com|gpu[.]intel[.]com|habana[.]ai)/|/.*gpu|^tencent[.]com/vcuda-'
{{- end -}}

{{/*
True for a pod that the policy applies to. Every pod of the cluster pays for this in both configurations, so there is
one condition (all of them are always evaluated), what the object has is looked up in literal lists and not the other
way round, and no list is built. Requests alone are asked: the API server fills them from limits before any webhook.
What only few pods get to, a mirror pod's annotation, stands last.
*/}}
{{- define "gpu-tiers.isGpuPod" -}}
(object.spec.containers.exists(c, {{ include "gpu-tiers.requestsGpus" . }}) ||
object.metadata.?labels.orValue({}).exists(l, l in {{ include "gpu-tiers.markingLabels" . }}) ||
(has(object.spec.priorityClassName) && object.spec.priorityClassName in {{ include "gpu-tiers.classNames" . }}) ||
{{- range include "gpu-tiers.shareAnnotations" . | fromJsonArray }}
(has(object.metadata.annotations) && '{{ . }}' in object.metadata.annotations) ||
{{- end }}
(has(object.spec.initContainers) &&
object.spec.initContainers.exists(c, {{ include "gpu-tiers.requestsGpus" . }})) ||
(has(object.spec.resourceClaims) && size(object.spec.resourceClaims) > 0) ||
has(object.spec.schedulingGroup)) &&
!(has(object.metadata.annotations) && 'kubernetes.io/config.mirror' in object.metadata.annotations)
{{- end -}}

{{/* True for a container `c` that requests something listed. */}}
{{- define "gpu-tiers.requestsGpus" -}}
c.?resources.?requests.orValue({}).exists(n,
n in {{ include "gpu-tiers.resourceNames" . }} && quantity(c.resources.requests[n]).isGreaterThan(quantity('0')))
{{- end -}}

{{/* matchConditions of pods on CREATE. */}}
{{- define "gpu-tiers.podConditions" -}}
- name: concerns-gpus
  expression: >-
    {{- include "gpu-tiers.isGpuPod" . | nindent 4 }}
{{- end -}}

{{/*
matchConditions of pods on CREATE that no other entry takes: true for a priority that may lie above a tenant's ceiling.
No ceiling is lower than the lowest tier, but one that names no tier, which is warned about. The API server evaluates each
condition of a list, whatever the others say, so this is a single one: nearly every pod of a cluster ends at its first
comparison.
*/}}
{{- define "gpu-tiers.podPriorityConditions" -}}
- name: priority-above-the-lowest-tier-without-gpus
  expression: >-
    object.spec.?priority.orValue(0) > {{ include "gpu-tiers.lowestTierValue" . }} &&
    !('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({})) &&
    !({{- include "gpu-tiers.isGpuPod" . | nindent 4 }})
{{- end -}}

{{/*
matchConditions of pods on UPDATE: true only for a changed label of tier or queue, a changed part of a GPU that the policy counts,
or nodes chosen behind a scheduling gate where the policy has flavors, so that a finalizer can always be removed.
*/}}
{{- define "gpu-tiers.podUpdateConditions" -}}
- name: not-a-mirror-pod
  expression: "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))"
- name: not-being-deleted
  expression: "!has(object.metadata.deletionTimestamp)"
- name: tier-or-part-of-a-gpu-changed
  expression: >-
    object.metadata.?labels[?'gpu-tiers.dev/tier'].orValue('') !=
    oldObject.metadata.?labels[?'gpu-tiers.dev/tier'].orValue('')
    {{- with include "gpu-tiers.shareAnnotations" . | fromJsonArray }}
    {{- range append . "gpu-fraction-num-devices" }} ||
    object.metadata.?annotations[?'{{ . }}'].orValue('') !=
    oldObject.metadata.?annotations[?'{{ . }}'].orValue('')
    {{- end }}
    {{- end }}
    {{- if include "gpu-tiers.kueue" . | fromJson }} ||
    object.metadata.?labels[?'kueue.x-k8s.io/priority-class'].orValue('') !=
    oldObject.metadata.?labels[?'kueue.x-k8s.io/priority-class'].orValue('')
    {{- end }}
    {{- if include "gpu-tiers.flavors" . | fromJsonArray }} ||
    ({{- include "gpu-tiers.choosesNodes" . | nindent 4 }} &&
    ({{- include "gpu-tiers.isGpuPod" . | nindent 4 }}))
    {{- end }}
{{- end -}}

{{/*
True where the nodes change on which a pod may run: a pod behind a scheduling gate may get a node selector, as it does
of Kueue when its gate is lifted. Pods without a gate, nearly all, end at the first comparison.
*/}}
{{- define "gpu-tiers.choosesNodes" -}}
size(oldObject.spec.?schedulingGates.orValue([])) > 0 &&
(object.spec.?nodeSelector.orValue({}) != oldObject.spec.?nodeSelector.orValue({}) ||
object.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.orValue({}) !=
oldObject.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.orValue({}))
{{- end -}}

{{/* matchConditions of workloads: true for what a person applied, not for what a controller created or updated. */}}
{{- define "gpu-tiers.nobodyControlsIt" -}}
- name: nobody-controls-it
  expression: "!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))"
{{- end -}}

{{/*
Of workloads that a controller made, only gangs are reviewed that no gang makes: the Job of a CronJob, the PyTorchJob of
a Katib trial. Takes {root, gangs: the plurals of the gangs in the entry}.
*/}}
{{- define "gpu-tiers.workloadConditions" -}}
{{- if .gangs -}}
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
    object.?spec.orValue({}) != oldObject.?spec.orValue({}) ||
    object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})
{{- end -}}

{{/*
True for a workload that is written to at its creation: one that Kueue queues, whoever made it, and with `templates:
Mutate` what a person applied. Kueue's own webhook comes before ours and names the default queue. Every Volcano Job, for
its rank. Empty where none is. Takes {root, group}.
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
{{- end -}}
{{- join " || " $terms -}}
{{- end -}}
