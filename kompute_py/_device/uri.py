"""Device URIs: a device and the options of a Manager in one text, as programs keep it in a setting.

``vulkan://nvidia?queues=2&validation=1``: after ``//`` stands what names a device in any text (an index, a
part of a name, a UUID, a PCI address, several separated by commas), or nothing for the best one; after ``?``
the options, as the environment's variables have them, and ``queues``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from .._base.errors import InvalidArgumentError, shown

_SCHEME = "vulkan:"
_MOST_QUEUES = 1024


def is_uri(device: Any) -> TypeGuard[str]:
    """Whether a device is named by a URI."""
    return isinstance(device, str) and device.strip().lower().startswith(_SCHEME)


def split_uri(device: str) -> tuple[str | None, dict[str, str]]:
    """The text that names the device, None for the best one, and the options as text.

    Raises InvalidArgumentError for a text that is not such a URI, and for an option that stands there twice.
    """
    from urllib.parse import parse_qsl, unquote, urlsplit

    text = device.strip()
    advice = "write vulkan://DEVICE?OPTION=VALUE&OPTION=VALUE, such as vulkan://nvidia?queues=2 or vulkan://nvidia,cpu"
    try:
        parts = urlsplit(text)
        found = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else []
    except ValueError as error:
        raise InvalidArgumentError(f"The device {shown(device)} is not a URI ({error}); {advice}") from None
    path = parts.path.rstrip("/")
    if not text[len(_SCHEME) :].startswith("//") or path or parts.fragment:
        raise InvalidArgumentError(f"The device {shown(device)} is not a URI of a device; {advice}")
    options: dict[str, str] = {}
    for name, value in found:
        if name in options:
            raise InvalidArgumentError(f"The device {shown(device)} has the option {shown(name)} twice")
        options[name] = value
    return unquote(parts.netloc).strip() or None, options


def without_uris(devices: str, source: str, comma: str = ";") -> str:
    """A list of devices as text, with a device's name for each URI of it, and `comma` between them.

    Raises InvalidArgumentError for a URI that names no device or has options: they are a Manager's.
    """
    if _SCHEME not in devices.lower():
        return devices
    names: list[str] = []
    for entry in re.split("[;,]", devices):
        if not is_uri(entry):
            names.append(entry)
            continue
        name, options = split_uri(entry)
        if name is None or options:
            fault = "names no device" if name is None else "has options, which belong to a Manager"
            raise InvalidArgumentError(f"{source} has the URI {shown(entry.strip())}, which {fault}")
        names.append(name)
    return comma.join(names)


def with_options(device: Any, options: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any], int | None]:
    """The device's name, the options (those given come first), and how many queues a URI asks for.

    Raises InvalidArgumentError as `split_uri` does, and for a number of queues that is not 1 to 1024.
    """
    if not is_uri(device):
        return device, options, None
    named, more = split_uri(device)
    queues = more.pop("queues", None)
    if queues is not None and not (queues.isdecimal() and 1 <= int(queues[:9]) <= _MOST_QUEUES):
        raise InvalidArgumentError(
            f"queues is {shown(queues)} in the device's URI {shown(device)}; give 1 to {_MOST_QUEUES}"
        )
    given = {name: value for name, value in options.items() if value is not None}
    return named, {**more, **given}, None if queues is None else int(queues)
