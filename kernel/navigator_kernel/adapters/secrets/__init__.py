"""Finding secrets in text, and replacing them."""
