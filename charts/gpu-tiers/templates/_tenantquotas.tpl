{{/*
Warnings for whoever writes a TenantQuota, and the refusal of a new name that the policy does not know. Nothing waits for
them: failurePolicy is Ignore, two seconds are enough, and the API server asks only where the spec is new, so that no
write of labels or status does.
*/}}
{{- define "gpu-tiers.tenantQuotaEntry" -}}
- name: tenantquotas.validate.gpu-tiers.dev
  {{- include "gpu-tiers.entry" (dict "root" . "path" "/validate" "timeoutSeconds" 2) | nindent 2 }}
  failurePolicy: Ignore
  rules:
  - {apiGroups: [gpu-tiers.dev], apiVersions: ["*"], resources: [tenantquotas], operations: [CREATE, UPDATE], scope: Cluster}
  matchConditions:
  - name: not-being-deleted
    expression: "!has(object.metadata.deletionTimestamp)"
  - name: spec-is-new
    expression: "request.operation == 'CREATE' || object.spec != oldObject.spec"
{{- end -}}

{{/* The same for whoever labels a namespace: asked about a label of ours, or one that was to be ours, that is new. */}}
{{- define "gpu-tiers.namespaceEntry" -}}
- name: namespaces.validate.gpu-tiers.dev
  {{- include "gpu-tiers.entry" (dict "root" . "path" "/validate" "timeoutSeconds" 2) | nindent 2 }}
  failurePolicy: Ignore
  rules:
  - {apiGroups: [""], apiVersions: ["*"], resources: [namespaces], operations: [CREATE, UPDATE], scope: Cluster}
  matchConditions:
  - name: not-being-deleted
    expression: "!has(object.metadata.deletionTimestamp)"
  - name: label-like-ours-is-new
    expression: >-
      object.metadata.?labels.orValue({}).exists(l, l.matches('{{ (include "gpu-tiers.known" . | fromJson).keysLikeOurs }}') &&
      (request.operation == 'CREATE' || oldObject.metadata.?labels[?l].orValue(' ') != object.metadata.labels[l]))
{{- end -}}

{{/*
JSON: the names of the TenantQuotas that this upgrade deletes, because they are no value any more. None where helm can't
look into the cluster. The label tells them from those of extraObjects.
*/}}
{{- define "gpu-tiers.droppedTenants" -}}
{{- $given := list -}}
{{- range .Values.tenants -}}
{{- $given = append $given .name -}}
{{- end -}}
{{- $dropped := list -}}
{{- if and .Release.IsUpgrade (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "tenantquotas.gpu-tiers.dev") -}}
{{- range (lookup "gpu-tiers.dev/v1alpha1" "TenantQuota" "" "").items -}}
{{- $ours := and (eq "true" (include "gpu-tiers.isOurs" (dict "root" $ "object" .))) (hasKey (default dict .metadata.labels) "helm.sh/chart") -}}
{{- if and $ours (not (has .metadata.name $given)) (ne "keep" (get .metadata.annotations "helm.sh/resource-policy")) -}}
{{- $dropped = append $dropped .metadata.name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- sortAlpha $dropped | toJson -}}
{{- end -}}
