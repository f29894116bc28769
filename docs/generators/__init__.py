"""What writes the generated pages: each page has one source of truth, and that is not the page."""
