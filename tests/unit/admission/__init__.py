"""Reviews driven from bytes to bytes, without a socket."""
