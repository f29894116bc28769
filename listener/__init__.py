"""Travels as text into training pods: saves, ends and resumes programs that know nothing of gpu-tiers.

It is no part of the webhook, which only carries it (`webhook/policy/checkpoint/listen.py` joins these modules).
It runs in the user's Python beside the user's code: Python 3.9 and newer, the standard library alone, and a fault of
ours may never end or slow a training.
"""
