# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What an acquire makes, whichever kind it is: by which metadata it is known, and when it goes away by itself."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from ...cluster.resources import ACQUIRE_ID_ANNOTATION, BATCH_LABEL, EGRESS_LABEL, Body, ObjectRef
from ..timestamps import timestamp
from .egress_label import policy_name_of
from .request import AcquireRequest


@dataclasses.dataclass(frozen=True)
class ManifestBuilder:
    """One object that is about to be made.

    Attributes:
        request: what the caller asks for.
        ref: the object's name and kind.
        acquire_id: by which it is known as ours, when the answer to its POST was lost.
        now: when its lease begins.
        batch: the batch that it belongs to, or None.
    """

    request: AcquireRequest
    ref: ObjectRef
    acquire_id: str
    now: datetime.datetime
    batch: str | None = None

    @property
    def lease(self) -> dict[str, t.Any]:
        """The fields with which it goes away by itself."""
        end = self.now + datetime.timedelta(seconds=self.request.ttl)
        return {"shutdownTime": timestamp(end), "shutdownPolicy": "Delete"}

    @property
    def pod_labels(self) -> dict[str, str]:
        """The labels that the pod is asked to carry beyond its template's."""
        own = {EGRESS_LABEL: policy_name_of(self.acquire_id)} if self.request.per_sandbox_egress else {}
        return {**self.request.pod_labels, **own}

    def body(self, spec: Body) -> Body:
        """The whole object."""
        ref = self.ref
        annotations = {ACQUIRE_ID_ANNOTATION: self.acquire_id}
        metadata: Body = {"name": ref.name, "namespace": ref.namespace, "annotations": annotations}
        labels = {**self.request.labels, **({BATCH_LABEL: self.batch} if self.batch else {})}
        if labels:
            metadata["labels"] = labels
        return {"apiVersion": ref.kind.api_version, "kind": ref.kind.name, "metadata": metadata, "spec": spec}
