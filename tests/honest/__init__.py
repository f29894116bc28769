"""A simulation of honest users: random histories over the whole of gpu-tiers, judged by an oracle of their own."""
