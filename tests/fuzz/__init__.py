"""Reviews that are spoiled at random, through decoding and the whole decision."""
