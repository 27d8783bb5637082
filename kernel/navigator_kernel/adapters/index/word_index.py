"""Finds rows by their words with BM25 in tantivy, over fields that are already cut into terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from navigator_kernel.errors import Damaged

_HEAP = 400_000_000  # bytes, allocated as needed; a smaller heap makes more segments, and each slows every search
_STEMS = 1 << 16  # cached stems; beyond that, all are dropped
_MERGE_AT = 12  # segments from which a change waits for their merge


class WordIndex:
    """An index in `folder`, or in memory without one. `fields` are the names of a row's fields."""

    def __init__(self, fields: Sequence[str], folder: Path | None = None) -> None:
        import tantivy

        self._tantivy, self.fields = tantivy, tuple(fields)
        schema = tantivy.SchemaBuilder()
        for name in fields:
            schema.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
        schema.add_unsigned_field("row", fast=True)
        schema.add_text_field("key", tokenizer_name="raw", index_option="basic")  # deletion by a number does not work
        self._schema = schema.build()
        try:
            self._index = tantivy.Index(self._schema, path=None if folder is None else str(folder))
            self._searcher = self._index.searcher()
        except (ValueError, OSError) as error:
            raise Damaged(f"the words of {str(folder)!r} cannot be read", hint="they are indexed again") from error
        stemmer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        self._stemmer = stemmer.filter(tantivy.Filter.stemmer("english")).build()
        self._stems: dict[str, str] = {}

    def stems(self, words: Sequence[str]) -> list[str]:
        """Snowball's English stem of each word; words of other languages stay unchanged."""
        if len(self._stems) > _STEMS:
            self._stems.clear()
        new = list(set(words).difference(self._stems))
        if new:
            self._stems |= zip(new, self._stemmer.analyze(" ".join(new)), strict=True)
        return list(map(self._stems.__getitem__, words))

    def change(self, add: Iterable[tuple[int, Mapping[str, Sequence[str]]]] = (), remove: Iterable[int] = ()) -> None:
        """Adds and removes rows; the changes are durable and visible on return. One writer at a time."""
        writer = self._index.writer(_HEAP, 1)
        for row in remove:
            writer.delete_documents_by_term("key", str(row))
        for row, fields in add:
            document = self._tantivy.Document()
            document.add_unsigned("row", row)
            document.add_text("key", str(row))
            for name, terms in fields.items():
                document.add_text(name, " ".join(terms))
            writer.add_document(document)
        writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()
        if self._searcher.num_segments >= _MERGE_AT:
            writer.wait_merging_threads()

    def search(self, terms: Mapping[str, float], weights: Mapping[str, float], limit: int) -> list[tuple[int, float]]:
        """At most `limit` rows with their score, best first: those with any of `terms` in any field that has a weight.
        `terms` maps each term to its boost."""
        query, should = self._tantivy.Query, self._tantivy.Occur.Should
        clauses = [
            (should, query.boost_query(query.term_query(self._schema, name, term, "freq"), weight * boost))
            for term, boost in terms.items()
            for name, weight in weights.items()
            if self.seen(name, term)  # takes a third of the time of a clause
        ]
        if not clauses:
            return []
        hits = self._searcher.search(query.boolean_query(clauses), limit).hits
        rows = self._searcher.fast_field_values("row", [address for _, address in hits])
        return [(int(row), float(score)) for row, (score, _) in zip(rows, hits, strict=True) if row is not None]

    def seen(self, field: str, term: str) -> int:
        """The number of rows whose field contains the term."""
        return int(self._searcher.doc_freq(field, term))
