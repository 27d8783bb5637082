"""The sentence encoder and the files of the search index."""
