"""Documents to chunks: what is indexed, found and cited. `policy.py` has the sizes and the labels of the rules."""

from dari.knowledge.chunk.chunker import chunk_document
from dari.knowledge.chunk.policy import ChunkPolicy, chunker_version, current_chunkers, token_count
from dari.knowledge.chunk.sentences import sentence_spans

__all__ = ["ChunkPolicy", "chunk_document", "chunker_version", "current_chunkers", "sentence_spans", "token_count"]
