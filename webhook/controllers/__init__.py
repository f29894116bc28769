"""The controllers: background tasks that write status, events and objects, most of them on the leader only."""
