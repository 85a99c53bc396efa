"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.search.encoder import LONGEST_TEXT, Encoder, MiniLM, WordPiece, convert_minilm
    from trysquare.search.index import LEARNED, Ranked, SearchIndex, Weights, lead, split_request
    from trysquare.search.vectors import Vectors, choose_vectors, default_vectors, encoder_file, installed_vectors

__all__ = [
    "LEARNED", "LONGEST_TEXT", "Encoder", "MiniLM", "Ranked", "SearchIndex", "Vectors", "Weights", "WordPiece",
    "choose_vectors", "convert_minilm", "default_vectors", "encoder_file", "installed_vectors", "lead", "split_request",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "encoder": "LONGEST_TEXT Encoder MiniLM WordPiece convert_minilm",
        "index": "LEARNED Ranked SearchIndex Weights lead split_request",
        "vectors": "Vectors choose_vectors default_vectors encoder_file installed_vectors",
    },
)
