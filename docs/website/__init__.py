"""Builds the pages as a site: lays them out in a folder of their own, and runs zensical there."""
