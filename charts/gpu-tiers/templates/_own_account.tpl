{{/* The spec of the policy that bounds what `users` change: the webhook's account, and that of the Job at an uninstall. */}}
{{- define "gpu-tiers.ownAccountSpec" }}
{{- $told := include "gpu-tiers.toldCosts" .root | fromJsonArray }}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  resourceRules:
  - {apiGroups: [""], apiVersions: ["*"], resources: [pods, nodes], operations: [UPDATE]}
  {{- range $told }}
  {{- if .group }}
  - {apiGroups: [{{ .group }}], apiVersions: ["*"], resources: [{{ .resource }}], operations: [UPDATE]}
  {{- end }}
  {{- end }}
matchConditions:
- name: the-webhook-itself
  expression: request.userInfo.username in {{ toJson .users }}
variables:
- name: isNode
  expression: request.resource.resource == 'nodes'
- name: ours
  expression: "variables.isNode ? ['gpu-tiers.dev/reservation', 'gpu-tiers.dev/failed-preemptions'] : {{ range $told }}request.resource.resource == '{{ .resource }}' ? ['{{ .annotation }}'] : {{ end }}[]"
- name: before
  expression: oldObject.metadata.?annotations.orValue({})
- name: after
  expression: object.metadata.?annotations.orValue({})
- name: label
  expression: "variables.isNode ? 'gpu-tiers.dev/reserved' : ''"
- name: labelsBefore
  expression: oldObject.metadata.?labels.orValue({})
- name: labelsAfter
  expression: object.metadata.?labels.orValue({})
- name: metadataIsKept
  expression: >-
    ['ownerReferences', 'finalizers'].all(field, object.metadata[?field] == oldObject.metadata[?field]) &&
    variables.labelsBefore.all(key, key == variables.label || variables.labelsAfter[?key] == variables.labelsBefore[?key]) &&
    variables.labelsAfter.all(key, key == variables.label || key in variables.labelsBefore) &&
    variables.before.all(key, key in variables.ours || variables.after[?key] == variables.before[?key]) &&
    variables.after.all(key, key in variables.ours || key in variables.before)
# The fields of a pod's spec that the API server allows to change.
- name: opened
  expression: >-
    request.resource.resource == 'pods' &&
    ['containers', 'initContainers', 'activeDeadlineSeconds', 'terminationGracePeriodSeconds', 'tolerations',
    'nodeSelector', 'affinity'].all(field, object.spec[?field] == oldObject.spec[?field]) &&
    object.spec.?schedulingGates.orValue([]) ==
    oldObject.spec.?schedulingGates.orValue([]).filter(gate, gate.name != 'gpu-tiers.dev/quota')
- name: reserved
  expression: "!variables.isNode ? [] : object.spec.?taints.orValue([]).filter(taint, taint.key == 'gpu-tiers.dev/reserved')"
validations:
- expression: variables.isNode || variables.metadataIsKept && (object.?spec == oldObject.?spec || variables.opened)
  message: >-
    the webhook's own account may open the scheduling gate gpu-tiers.dev/quota and change the annotation that tells what
    an eviction costs, and nothing else
  reason: Forbidden
- expression: >-
    !variables.isNode || variables.metadataIsKept &&
    ['podCIDR', 'podCIDRs', 'providerID', 'unschedulable', 'configSource', 'externalID'].all(field,
    object.spec[?field] == oldObject.spec[?field]) &&
    object.spec.?taints.orValue([]).filter(taint, taint.key != 'gpu-tiers.dev/reserved') ==
    oldObject.spec.?taints.orValue([]).filter(taint, taint.key != 'gpu-tiers.dev/reserved') &&
    size(variables.reserved) <= 1 && variables.reserved.all(taint, taint.effect == 'NoSchedule')
  message: >-
    the webhook's own account may change the taint and the label gpu-tiers.dev/reserved of nodes and what it says of
    them, and nothing else
  reason: Forbidden
{{- end }}
