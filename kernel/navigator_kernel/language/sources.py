"""Patterns of words from the files beside this one, by the name of the file and of the pattern.

In a pattern, `<<NAME>>` stands for an earlier one of its file.
"""

from __future__ import annotations

from pathlib import Path

from navigator_kernel.text import lazy_compile

_PART = lazy_compile(r"<<(\w+)>>")
SOURCES: dict[str, dict[str, str]] = {"clauses": {}, "targets": {}, "stated": {}, "orders": {}}

for _name, _sources in SOURCES.items():
    for _line in Path(__file__).with_name(f"{_name}.tsv").read_text("utf-8").splitlines()[1:]:
        _key, _, _source = _line.partition("\t")
        for _part in _PART.findall(_source):
            _source = _source.replace(f"<<{_part}>>", _sources[_part])
        _sources[_key] = _source
