# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Images: whether the engine has one, and pulling one that it lacks."""

from __future__ import annotations

import json
import urllib.parse

from ..deadline import Deadline
from ..errors import ApiError, GoneError, SandboxError
from ..text import clean_text
from .client import EngineClient, Json


class ImagePullError(SandboxError):
    """The registry, or the engine on its way there, refused an image; the message has its text."""

    reason = "image-pull"


def find_image(client: EngineClient, image: str, deadline: Deadline) -> Json:
    """An image as the engine has it; GoneError when it does not."""
    path = f"/images/{urllib.parse.quote(image, safe='')}/json"
    found = client.request("GET", path, deadline, subject=f"Image {image}").json()
    return found if isinstance(found, dict) else {}


def require_image(client: EngineClient, image: str, deadline: Deadline) -> Json:
    """An image as the engine has it, pulled first when it is missing.

    Raises:
        ImagePullError: it cannot be pulled; ``retryable`` when the registry did not refuse the image itself.
    """
    try:
        return find_image(client, image, deadline)
    except GoneError:
        pull(client, image, deadline)
        return find_image(client, image, deadline)


def pull(client: EngineClient, image: str, deadline: Deadline) -> None:
    """Pull an image; to cut the request ends the pull in the engine."""
    name, tag = split_reference(image)
    query = {"fromImage": name, "tag": tag}
    try:
        with client.open(
            "POST", "/images/create", deadline, subject=f"Image {image}", query=query, whole=True
        ) as opened:
            for line in opened.lines():
                _raise_if_failed(image, line)
    except ApiError as error:
        raise _failure(image, str(error.api_message)) from None


def split_reference(image: str) -> tuple[str, str]:
    """The name, and the tag or digest that the engine is asked for; ``latest`` when the reference has neither."""
    name, at, digest = image.partition("@")
    if at:
        return name, digest
    name, colon, tag = image.rpartition(":")
    # The port of a registry is followed by a path.
    return (name, tag) if colon and "/" not in tag else (image, "latest")


def _raise_if_failed(image: str, line: bytes) -> None:
    try:
        progress = json.loads(line)
    except ValueError:
        return
    if isinstance(progress, dict) and progress.get("error"):
        raise _failure(image, str(progress["error"]))


#: What a registry reports about an image that is not there, or not for this user; anything else may pass.
_FINAL = ("not found", "manifest unknown", "denied", "unauthorized", "no basic auth", "invalid reference",
          "does not exist", "name unknown")  # fmt: skip


def _failure(image: str, text: str) -> ImagePullError:
    text = clean_text(" ".join(text.split()), 600).rstrip(".")
    return ImagePullError(
        f"Image {image}: the pull failed: {text}.",
        retryable=not any(word in text.lower() for word in _FINAL),
        object=f"Image {image}",
        next_step="Look at the image's name, and whether the engine reaches the registry and may read it there.",
    )
