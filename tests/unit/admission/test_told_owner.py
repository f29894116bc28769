"""A dry run may tell of an owner that nobody has created; a pod that is created for good may not."""

import json

import pytest

from tests.builders import a_pod, a_pytorchjob
from tests.builders.world import World
from webhook.admission import review
from webhook.admission.told_owner import TOLD_OWNER
