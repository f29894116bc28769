{{/*
Warnings for whoever writes a TenantQuota. Nothing waits for them: failurePolicy is Ignore, two seconds are enough, and
the API server asks only where the spec is new, so that no write of labels or status does.
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
