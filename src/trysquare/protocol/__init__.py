"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.protocol.envelope import decode_header, encode_header, mirrored_arguments
    from trysquare.protocol.messages import (
        INVALID_REQUEST,
        PARSE_ERROR,
        Message,
        RequestId,
        RpcError,
        decode,
        decode_any,
        decode_batch,
        decode_part,
        encode,
        encode_error,
        encode_notification,
        encode_request,
        encode_result,
    )
    from trysquare.protocol.methods import CLIENT_REQUESTS, SERVER_REQUESTS, CallToolParams, Method, Params, decoder_of
    from trysquare.protocol.seal import StateSeal
    from trysquare.protocol.versions import (
        HANDSHAKE_VERSIONS,
        LATEST_STATELESS,
        STATELESS_VERSIONS,
        VERSIONS,
        ProtocolVersion,
    )

__all__ = [
    "CLIENT_REQUESTS",
    "HANDSHAKE_VERSIONS",
    "INVALID_REQUEST",
    "LATEST_STATELESS",
    "PARSE_ERROR",
    "SERVER_REQUESTS",
    "STATELESS_VERSIONS",
    "VERSIONS",
    "CallToolParams",
    "Message",
    "Method",
    "Params",
    "ProtocolVersion",
    "RequestId",
    "RpcError",
    "StateSeal",
    "decode",
    "decode_any",
    "decode_batch",
    "decode_header",
    "decode_part",
    "decoder_of",
    "encode",
    "encode_error",
    "encode_header",
    "encode_notification",
    "encode_request",
    "encode_result",
    "mirrored_arguments",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "envelope": "decode_header encode_header mirrored_arguments",
        "messages": (
            "INVALID_REQUEST Message PARSE_ERROR RequestId RpcError decode decode_any decode_batch "
            "decode_part encode encode_error encode_notification encode_request encode_result"
        ),
        "methods": "CLIENT_REQUESTS CallToolParams Method Params SERVER_REQUESTS decoder_of",
        "seal": "StateSeal",
        "versions": "HANDSHAKE_VERSIONS LATEST_STATELESS ProtocolVersion STATELESS_VERSIONS VERSIONS",
    },
)
