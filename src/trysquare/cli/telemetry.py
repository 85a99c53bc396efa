"""Tracing of a server, set up by OpenTelemetry's own environment variables."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager

logger = logging.getLogger("trysquare.telemetry")

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def is_wanted(env: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment names a place to send traces to, and nothing switches them off."""
    off = env.get("OTEL_SDK_DISABLED", "").lower() == "true" or env.get("OTEL_TRACES_EXPORTER") == "none"
    return not off and any(env.get(name) for name in _ENDPOINTS)


@contextmanager
def tracing() -> Generator[None]:
    """Send traces for the length of the block, if the environment says where to. Nothing is sent before a call."""
    if not is_wanted():
        yield
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning("Traces are asked for, but the extra is missing: pip install 'trysquare[otel]'")
        yield
        return
    named = Resource.create({SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "trysquare")})
    provider = TracerProvider(resource=named)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
