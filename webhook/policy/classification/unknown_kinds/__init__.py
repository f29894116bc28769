"""What objects are made of whose kind no row of the table describes, told by their shape."""
