"""Resource claims, their templates, devices and classes of these, and pods that get devices by them."""

from localcluster.fake_devices import DRIVER, device, device_class, resource_slice
from tests.builders.built import Built, Tree
from tests.builders.pods import IMAGE, PodBuilder, a_pod
from webhook.objects.view import view
from webhook.policy.devices import ResourceSlice

DEVICE_CLASS = DRIVER
"""NVIDIA's class for whole GPUs, which bears the name of its driver."""


class SliceBuilder(Built):
    """A ResourceSlice of any driver."""

    def view(self) -> ResourceSlice:
        return view(self.json(), ResourceSlice)


def a_slice(
    *devices: Tree, node: str = "node-a", driver: str = DEVICE_CLASS, generation: int = 1, count: int = 1
) -> SliceBuilder:
    """Return a ResourceSlice of a node, one of `count` in its pool."""
    return SliceBuilder(resource_slice(*devices, node=node, driver=driver, generation=generation, count=count))


def a_device(name: str = "gpu-0", *taints: Tree, **attributes: object) -> Tree:
    """A device of a ResourceSlice."""
    return device(name, *taints, **attributes)


def a_claim_template(name: str = "gpus", count: int = 1, **exactly: object) -> Built:
    """Return a ResourceClaimTemplate with one request, `gpu`, for `count` devices; `exactly` are more of its fields."""
    return _claim("ResourceClaimTemplate", name, {"spec": _spec(count, exactly)})


def a_claim(name: str = "gpus", count: int = 1, **exactly: object) -> Built:
    """A ResourceClaim, which any pod of its namespace may name."""
    return _claim("ResourceClaim", name, _spec(count, exactly))


def a_device_class(name: str, *selectors: str, resource: str = "") -> Built:
    """A DeviceClass with these CEL expressions, whose devices may be asked for as a resource of that name."""
    return Built(device_class(name, *selectors, resource=resource))


NICS = a_device_class("nic.example.com", "device.driver == 'nic.example.com'")
"""A class of network cards."""


def a_claiming_pod(template: str = "gpus", *, claim: str | None = None, **container: object) -> PodBuilder:
    """A pod whose container gets all of one claim: its own of a template, or the ResourceClaim `claim`."""
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    main = {"name": "main", "image": IMAGE, "resources": {"claims": [{"name": "gpu"}]}, **container}
    return a_pod().having("spec.resourceClaims", [{"name": "gpu", **source}]).having("spec.containers", [main])


def _spec(count: int, exactly: dict[str, object]) -> Tree:
    device = {"deviceClassName": DEVICE_CLASS, "allocationMode": "ExactCount", "count": count, **exactly}
    return {"devices": {"requests": [{"name": "gpu", "exactly": device}]}}


def _claim(kind: str, name: str, spec: Tree) -> Built:
    metadata = {"name": name, "namespace": "team-alpha"}
    return Built({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec})
