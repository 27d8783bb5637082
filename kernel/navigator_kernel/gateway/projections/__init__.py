"""The event stream in the words of other protocols; each client speaks one of them."""
