"""The training examples on real frameworks: each saves when asked, ends as its page says, and loses no step."""
