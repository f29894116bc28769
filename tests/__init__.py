"""Tests of all parts."""
