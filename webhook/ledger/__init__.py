"""Who has booked what."""
