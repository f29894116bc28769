"""The page as HTML: jinja2 escapes whatever stands in an object, and nothing is fetched from elsewhere."""

from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from webhook.page.content import PageContent
from webhook.page.posture_picture import posture_picture

_PAGE = Environment(
    loader=PackageLoader("webhook.page"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
).get_template("page.html")


def rendered(content: PageContent) -> str:
    """The whole page."""
    picture = Markup(posture_picture(content.posture))  # noqa: S704 - it escapes names itself
    return _PAGE.render(c=content, picture=picture, clock=_clock, now=_clock(datetime.now(UTC).timestamp()))


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
