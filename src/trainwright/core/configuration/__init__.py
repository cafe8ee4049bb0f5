"""The manager's configuration file: what it may say, what holds when it is silent, what is wrong in it."""

from __future__ import annotations
