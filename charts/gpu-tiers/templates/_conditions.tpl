{{/*
CEL that decides which requests reach the webhook. Under failurePolicy Fail an expression with an error refuses, so
absent fields go through `?` and orValue. Each is for one shape of object only.
*/}}

{{/* True for a pod, or a pod template, that the policy applies to. Takes {root, pod: the CEL path to it}. */}}
{{- define "gpu-tiers.isGpuPod" -}}
{{- $pod := .pod -}}
({{ $pod }}.spec.?containers.orValue([]) + {{ $pod }}.spec.?initContainers.orValue([])).exists(c,
[c.?resources.?requests.orValue({}), c.?resources.?limits.orValue({})].exists(asked, asked.exists(n,
n in {{ include "gpu-tiers.resourceNames" .root }} && quantity(asked[n]).isGreaterThan(quantity('0'))))) ||
size({{ $pod }}.spec.?resourceClaims.orValue([])) > 0 ||
has({{ $pod }}.spec.schedulingGroup) ||
{{ $pod }}.spec.?priorityClassName.orValue('') in {{ include "gpu-tiers.classNames" .root }} ||
{{ include "gpu-tiers.markingLabels" .root }}.exists(l, l in {{ $pod }}.?metadata.?labels.orValue({}))
{{- end -}}

{{/* matchConditions of pods on CREATE. */}}
{{- define "gpu-tiers.podConditions" -}}
- name: not-a-mirror-pod
  expression: "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))"
- name: concerns-gpus
  expression: >-
    {{- include "gpu-tiers.isGpuPod" (dict "root" . "pod" "object") | nindent 4 }}
{{- end -}}

{{/*
matchConditions of pods on CREATE that no other entry takes: true for a priority that may lie above a tenant's ceiling.
No ceiling is lower than the lowest tier. The API server evaluates each condition of a list, whatever the others say, so
that this is a single one: nearly every pod of a cluster ends at its first comparison.
*/}}
{{- define "gpu-tiers.podPriorityConditions" -}}
- name: priority-above-the-lowest-tier-without-gpus
  expression: >-
    object.spec.?priority.orValue(0) > {{ include "gpu-tiers.lowestTierValue" . }} &&
    !('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({})) &&
    !({{- include "gpu-tiers.isGpuPod" (dict "root" . "pod" "object") | nindent 4 }})
{{- end -}}

{{/* matchConditions of pods on UPDATE: true only for a changed tier label, so that a finalizer can always be removed. */}}
{{- define "gpu-tiers.podUpdateConditions" -}}
- name: not-a-mirror-pod
  expression: "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))"
- name: not-being-deleted
  expression: "!has(object.metadata.deletionTimestamp)"
- name: tier-label-changed
  expression: >-
    object.metadata.?labels[?'gpu-tiers.dev/tier'].orValue('') !=
    oldObject.metadata.?labels[?'gpu-tiers.dev/tier'].orValue('')
{{- end -}}

{{/* matchConditions of workloads: true for what a person applied, not for what a controller created or updated. */}}
{{- define "gpu-tiers.workloadConditions" -}}
- name: nobody-controls-it
  expression: "!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))"
- name: not-being-deleted
  expression: "!has(object.metadata.deletionTimestamp)"
- name: somebody-changed-it
  expression: >-
    request.operation == 'CREATE' ||
    object.?spec.orValue({}) != oldObject.?spec.orValue({}) ||
    object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})
{{- end -}}
