{{/* Pieces of pods: of the Deployment those that depend on several values, and what runs once. */}}

{{- define "gpu-tiers.updateStrategy" -}}
{{- if .Values.updateStrategy -}}
{{ toYaml .Values.updateStrategy }}
{{- else if .Values.hostNetwork -}}
# A new pod needs the ports that an old one of its node has.
type: RollingUpdate
rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
{{- else -}}
# A new pod is ready before an old one goes.
type: RollingUpdate
rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.network" -}}
hostNetwork: {{ .Values.hostNetwork }}
dnsPolicy: {{ .Values.dnsPolicy | default (.Values.hostNetwork | ternary "ClusterFirstWithHostNet" "ClusterFirst") }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Nothing where the value is empty. Pods that run once have it too: a cluster may ask it of every pod. */}}
{{- define "gpu-tiers.hostUsers" -}}
{{- if kindIs "bool" .Values.hostUsers -}}
hostUsers: {{ .Values.hostUsers }}
{{- end -}}
{{- end -}}

{{- define "gpu-tiers.spread" -}}
{{- $ours := dict "matchLabels" (include "gpu-tiers.selectorLabels" . | fromYaml) -}}
{{- range .Values.topologySpreadConstraints -}}
- {{- hasKey . "labelSelector" | ternary . (merge (dict "labelSelector" $ours) .) | toYaml | nindent 2 }}
{{ else -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    {{- toYaml $ours | nindent 4 }}
  # The pods of a rollout are spread among themselves, whatever nodes those have that they replace.
  matchLabelKeys: [pod-template-hash]
{{- end -}}
{{- end -}}

{{/* The labels of what runs once. Not the webhook's: its Service would send reviews there. Takes {root, does}. */}}
{{- define "gpu-tiers.onceLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}-{{ .does }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Of the spec of a pod that runs once. */}}
{{- define "gpu-tiers.oncePod" -}}
restartPolicy: Never
{{- with include "gpu-tiers.imagePullSecrets" . | fromJsonArray }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "gpu-tiers.hostUsers" . }}
{{ . }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Of its container. */}}
{{- define "gpu-tiers.onceContainer" -}}
image: {{ include "gpu-tiers.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
