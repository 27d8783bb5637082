"""AG-UI 1.0 (https://docs.ag-ui.com) for `navigator serve`: a plugin that adds the endpoints `/ag-ui`."""
