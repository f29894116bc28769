"""Finds and rewrites the links of a Markdown page."""

import re
from collections.abc import Callable

_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?P<plain>[^)\s]+)(?=\))|(?<=src=\")(?P<src>[^\"]+)|(?<=srcset=\")(?P<srcset>[^\"]+)")
_OUTSIDE = ("https://", "http://", "mailto:", "#")


def with_links(text: str, changed: Callable[[str], str]) -> str:
    """Return a page with each link within the project changed by `changed`; code blocks stay as they are."""
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_changed(text[end : fence.start()], changed), fence[0]]
        end = fence.end()
    return "".join((*parts, _changed(text[end:], changed)))


def _changed(prose: str, changed: Callable[[str], str]) -> str:
    return _LINK.sub(lambda link: link[0] if link[0].startswith(_OUTSIDE) else changed(link[0]), prose)
