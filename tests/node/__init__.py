"""Tests on a real node: what a kubelet does with the pods that the webhook has patched."""
