module gpu-tiers.dev/localcluster/pause

go 1.26.0
