"""The sentences shown to people, and the parsing of people's messages."""
