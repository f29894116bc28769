"""The code alone, with objects as the API server sends them."""
