"""Every number that README or docs state comes from here. Run with nothing else on the machine."""

from __future__ import annotations
