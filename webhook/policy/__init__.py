"""Pure decisions: values in, values out. No I/O, no client, no clock."""
