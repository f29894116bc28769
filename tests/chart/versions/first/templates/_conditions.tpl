{{/*
CEL that keeps requests away from the webhook. An expression that errors is a refusal under failurePolicy Fail, so
absent fields go through `?` and orValue. Each is for one shape of object only.
*/}}

{{/* The labels by which operators mark the members of a gang: one of them (a launcher, a head) may ask for no GPU. */}}
{{- define "gpu-tiers.gangLabels" -}}
{{- list "gpu-tiers.dev/tier"
         "training.kubeflow.org/job-name"
         "jobset.sigs.k8s.io/jobset-name"
         "ray.io/cluster"
         "leaderworkerset.sigs.k8s.io/name" | toJson -}}
{{- end -}}

{{/* True for a pod, or a pod template, that the policy is about. Takes {root, pod: the CEL path to it}. */}}
{{- define "gpu-tiers.isGpuPod" -}}
{{- $pod := .pod -}}
({{ $pod }}.spec.?containers.orValue([]) + {{ $pod }}.spec.?initContainers.orValue([])).exists(c,
{{ include "gpu-tiers.resourceNames" .root }}.exists(n,
quantity(c.?resources.?requests[?n].orValue('0')).isGreaterThan(quantity('0')) ||
quantity(c.?resources.?limits[?n].orValue('0')).isGreaterThan(quantity('0')))) ||
size({{ $pod }}.spec.?resourceClaims.orValue([])) > 0 ||
has({{ $pod }}.spec.schedulingGroup) ||
{{ $pod }}.spec.?priorityClassName.orValue('') in {{ include "gpu-tiers.classNames" .root }} ||
{{ include "gpu-tiers.gangLabels" . }}.exists(l, l in {{ $pod }}.?metadata.?labels.orValue({}))
{{- end -}}

{{/* matchConditions of pods on CREATE. */}}
{{- define "gpu-tiers.podConditions" -}}
- name: not-a-mirror-pod
  expression: "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))"
- name: concerns-gpus
  expression: >-
    {{- include "gpu-tiers.isGpuPod" (dict "root" . "pod" "object") | nindent 4 }}
{{- end -}}

{{/* matchConditions of pods on UPDATE: true for a changed tier label alone, so a finalizer can always be removed. */}}
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

{{/* matchConditions of workloads: what a person applied, not what a controller made or only reported about. */}}
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
